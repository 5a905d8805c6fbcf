"""One cell, for so many seconds; what is wrong makes the command fail, and its logs are kept."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.proof.figures import keep
from tests.servers.server import ServerMissingError

if TYPE_CHECKING:
    from tests.celery.chaos.running import Outcome

ENGINES = {"postgresql": "postgresql", "mariadb": "mysql"}


def main() -> int:
    """Run, print, and keep the figures; 1 if something is wrong, 2 if a server is not installed."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = Path(tempfile.mkdtemp(prefix="workflow_engine_chaos_"))
    print(f"== {arguments.database} x {arguments.broker}, {arguments.seconds:g} s, seed {arguments.seed}", flush=True)
    try:
        figures, complaints = _run(arguments, folder)
    except ServerMissingError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception:
        _where(arguments.seed, folder)
        raise
    print(json.dumps(figures, indent=2, ensure_ascii=False), flush=True)
    keep(f"live-{figures['cell']}", figures)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints or arguments.keep:
        _where(arguments.seed, folder)
    else:
        shutil.rmtree(folder)
    return 1 if complaints else 0


def _run(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], list[str]]:
    os.environ["WORKFLOW_ENGINE_TEST_ENGINE"] = ENGINES[arguments.database]  # read when tests.databases is loaded
    from tests.celery.chaos.cell import cell_of, settle_in

    with cell_of(arguments.database, arguments.broker) as cell:
        settle_in(cell, arguments.seconds, arguments.seed, folder)
        from tests.celery.chaos.running import run

        outcome = run(cell, arguments.seconds, arguments.seed, folder)
    return _figures(arguments, outcome), outcome.complaints


def _where(seed: int, folder: Path) -> None:
    print(f"Seed {seed}; the logs and the ledger are in {folder}", file=sys.stderr)


def _figures(arguments: argparse.Namespace, outcome: Outcome) -> dict[str, Any]:
    return {
        "cell": f"{arguments.database}-{arguments.broker}",
        "seed": arguments.seed,
        "seconds": round(outcome.storm),
        "seconds_of_recovery": round(outcome.calm, 1),
        "instances": outcome.instances,
        "faults": dict(sorted(outcome.faults.items())),
        "seen": dict(sorted(outcome.seen.items())),
        "violations": len(outcome.complaints),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.celery.chaos", description=__doc__)
    parser.add_argument("--database", choices=list(ENGINES), default="postgresql")
    parser.add_argument("--broker", choices=["redis", "rabbitmq"], default="redis")
    parser.add_argument("--seconds", type=float, default=200, help="how long the nemesis is at it")
    parser.add_argument("--seed", type=int, default=1, help="of the programs, the calls and the order of the deeds")
    parser.add_argument("--keep", action="store_true", help="keep the logs and the ledger even if nothing is wrong")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
