"""Every registered workflow and version: its steps with their rules, its diagram, and how many instances run on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.domain.declarations import Declaration
from workflow_engine.domain.registry import registry
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.inspection.capped import count_of
from workflow_engine.inspection.diagram import of_definition
from workflow_engine.inspection.drawing import svg
from workflow_engine.inspection.times import length
from workflow_engine.models import WorkflowInstance

_STEP: Promise = gettext_lazy("step")
_ACTIVITY: Promise = gettext_lazy("activity")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRules:
    """A step in words; "" where there is nothing to say."""

    key: str
    kind: str
    description: str
    retry: str
    timeout: str
    goes_to: str
    undo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One version of a workflow. `live` counts its live instances and may be an `AtLeast`."""

    name: str
    version: int
    label: str
    description: str
    queue: str
    live: int
    steps: Sequence[StepRules]
    drawing: SafeString

    @property
    def anchor(self) -> str:
        """Names its place on a page."""
        return f"{self.name}-{self.version}"


def definitions(using: str) -> list[Definition]:
    """All of them, by name and version."""
    rows = WorkflowInstance.objects.using(using).live()
    return [
        Definition(
            name=workflow.name,
            version=workflow.version,
            label=str(workflow.label),
            description=workflow.description,
            queue=workflow.queue,
            live=count_of(rows.filter(workflow_name=workflow.name, definition_version=workflow.version)),
            steps=[_rules(workflow.steps[key]) for key in workflow.step_keys()],
            drawing=svg(of_definition(workflow)),
        )
        for workflow in registry
    ]


def _rules(declared: Declaration) -> StepRules:
    return StepRules(
        key=declared.key,
        kind=str(_ACTIVITY if declared.is_activity else _STEP),
        description=declared.description.partition("\n")[0],
        retry=_retry(declared.retry),
        timeout=_timeout(declared),
        goes_to=", ".join(declared.goes_to or ()),
        undo=declared.handlers.get("compensation", "compensate") if declared.compensates else "",
    )


def _retry(policy: RetryPolicy) -> str:
    if policy.max_attempts == 1:
        return _("1 attempt")
    if policy.backoff is not None:
        return _("%(count)d attempts, delays of its own") % {"count": policy.max_attempts}
    told = {"count": policy.max_attempts, "first": _length(policy, 1), "last": _length(policy, policy.max_attempts - 1)}
    if told["first"] == told["last"]:
        return _("%(count)d attempts, %(first)s apart") % told
    return _("%(count)d attempts, %(first)s to %(last)s apart") % told


def _length(policy: RetryPolicy, attempt: int) -> str:
    """The longest that the delay can be: jitter only shortens it."""
    return length(policy.delay_after(attempt, lambda: 1.0))


def _timeout(declared: Declaration) -> str:
    if not declared.is_activity:
        return ""
    told = {"timeout": length(declared.timeout), "lease": length(declared.lease)}
    return _("at most %(timeout)s, silent for at most %(lease)s") % told
