"""What every command of the engine does the same way: common options, one clear line for a refusal, JSON, pipes."""

from __future__ import annotations

import getpass
import json
import os
import sys
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError, connections
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from workflow_engine import clock, engine
from workflow_engine.engine import Answer
from workflow_engine.engine.infrastructure import is_infrastructure
from workflow_engine.exceptions import InstanceNotFoundError, WorkflowEngineError, nearest
from workflow_engine.inspection import as_json, standing, workers
from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowInstance

_REFUSAL_LIMIT = 1000
_INTERRUPTED, _PIPE_CLOSED = 130, 141
"""128 plus the number of SIGINT and of SIGPIPE, as a shell reports them."""


class WorkflowCommand(BaseCommand):
    """Parses, calls, prints. A subclass writes `run` and, for options of its own, `add_options`.

    A user's mistake (any error of this package, a missing table, a database that is away) ends with exit code 1 and
    one line on standard error; Django's own --traceback shows where it came from.
    """

    # The checks of a whole project are not a price to pay for looking at one instance.
    requires_system_checks = []

    summary: str | Promise = ""
    """What the command does; for --help."""
    takes_actor = False
    """Whether --actor is an option: the command leaves a name in the history."""
    speaks_json = True
    """Whether --json is an option."""

    using: str
    actor: str
    as_json: bool

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        self.help = str(self.summary)
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_options(parser)
        parser.add_argument("--database", default="default", metavar="ALIAS", help=_("The database of the instances."))
        if self.takes_actor:
            parser.add_argument(
                "--actor", metavar="NAME", help=_("Who does this, for the history. Default: the user of this shell.")
            )
        if self.speaks_json:
            parser.add_argument("--json", action="store_true", dest="as_json", help=_("Print JSON, for scripts."))

    def add_options(self, parser: CommandParser) -> None:
        """Add the arguments that only this command has."""

    def run(self, options: dict[str, Any]) -> None:
        """Do it."""
        raise NotImplementedError

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Also what goes wrong in the checks before `run` is told in one line."""
        self.using = _known_alias(options["database"])
        self.actor = options.get("actor") or shell_user()
        self.as_json = options.get("as_json", False)
        _check_texts(options)
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
        except BrokenPipeError:
            # Whoever read this has enough, like `head`. Nothing may be flushed into the closed pipe at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(_PIPE_CLOSED) from None
        except KeyboardInterrupt:
            raise CommandError(_("Interrupted."), returncode=_INTERRUPTED) from None
        except (WorkflowEngineError, ImproperlyConfigured) as error:
            raise CommandError(one_line(error, _REFUSAL_LIMIT)) from error
        except (DatabaseError, InterfaceError) as error:
            refusal = self._database_refusal(error)
            if refusal is None:
                raise
            raise CommandError(refusal) from error
        return output

    def handle(self, *args: Any, **options: Any) -> None:
        self.run(options)

    def print_json(self, value: Any) -> None:
        """`value` on standard output, for scripts."""
        self.stdout.write(json.dumps(value, cls=as_json.Encoder, indent=2, ensure_ascii=False))

    def drive(self, instance_id: UUID) -> WorkflowInstance:
        """Let the instance act at once, in this process, so that the person sees what comes of it.

        Returns:
            The instance as it is then. Who has it in hand already will act instead.
        """
        answer = engine.drive(instance_id, using=self.using).answer
        if answer == Answer.LOCKED:
            self.note(_("A worker has it in hand and will see to it."))
        elif answer == Answer.NO_CODE:
            self.note(_("No code here can run it; a worker that has the code will see to it."))
        elif answer == Answer.DATABASE_TROUBLE:
            self.note(_("The database had trouble; a worker will see to it."))
        return self.reload(instance_id)

    def reload(self, instance_id: UUID) -> WorkflowInstance:
        """The instance as it is now.

        Raises:
            InstanceNotFoundError: it is gone.
        """
        row = WorkflowInstance.objects.using(self.using).filter(pk=instance_id).first()
        if row is None:
            raise InstanceNotFoundError(instance_id, self.using)
        return row

    def say_where(self, row: WorkflowInstance) -> None:
        """One line, or one JSON object: where the instance stands."""
        if self.as_json:
            self.print_json(as_json.summary(row))
            return
        now = clock.now(self.using)
        self.stdout.write(standing.summary(row, now))
        if standing.is_due(row, now) and (nobody := workers.missing_for(row, self.using, now)):
            self.note(nobody)

    def note(self, text: str) -> None:
        """A remark beside the result: on standard error, so that JSON stays JSON."""
        self.stderr.write(text, str)

    def _database_refusal(self, error: Exception) -> str | None:
        """One line for what an operator can mend; anything else is a bug and keeps its traceback."""
        connection, told = connections[self.using], {"using": self.using, "error": one_line(error)}
        try:
            present = WorkflowInstance._meta.db_table in connection.introspection.table_names()
        except (DatabaseError, InterfaceError):
            return _("The database '%(using)s' can't be reached: %(error)s") % told
        if not present:
            return (
                _(
                    "The tables of workflow_engine are missing in the database '%(using)s'. Run: python manage.py"
                    " migrate"
                )
                % told
            )
        if is_infrastructure(error):
            return _("The database '%(using)s' has trouble: %(error)s") % told
        return None


def shell_user() -> str:
    """The person at this shell, for the history."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user id without an entry in its passwd file
        name = _("user %(id)s") % {"id": getattr(os, "getuid", lambda: "?")()}
    return _("%(name)s (shell)") % {"name": name}


def _known_alias(alias: str) -> str:
    if alias in connections.settings:
        return alias
    told = {"alias": repr(alias), "nearest": nearest(alias, connections.settings)}
    raise CommandError(_("There is no database %(alias)s in DATABASES. %(nearest)s") % told)


def _check_texts(options: dict[str, Any]) -> None:
    """Arguments are bytes: what is not text in this locale would fail deep in a database driver."""
    for name, value in options.items():
        if isinstance(value, str) and ("\x00" in value or any("\ud800" <= char <= "\udfff" for char in value)):
            told = {"option": name.replace("_", "-"), "value": ascii(value)}
            raise CommandError(_("The argument '%(option)s' is not text: %(value)s.") % told)
