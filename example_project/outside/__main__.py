"""python -m example_project.outside: serve until told to end."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from .luck import Luck, Mood
from .server import Server


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.fresh:
        for path in Path(options.ledger).parent.glob(Path(options.ledger).name + "*"):
            path.unlink()
    luck = Luck(options.seed, down=range(*options.down))
    if options.stall:
        luck.moods = {("charge", options.stall): [Mood.STALLED]}
    with Server(options.ledger, luck, port=urlsplit(options.url).port or 0) as server:
        print(server.url, flush=True)  # noqa: T201 - what it is for
        if options.with_parent:
            # Ctrl-C reaches every process of the terminal, but the shop's workers still have something to ask.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            threading.Thread(target=_end_with_parent, args=[server], daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return


def _end_with_parent(server: Server) -> None:
    """The parent holds the other end of our standard input: it closes when the parent is gone, however that went."""
    sys.stdin.read()
    server.shutdown()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="outside", description="A payment provider and a parcel carrier.")
    parser.add_argument("--ledger", required=True, help="The SQLite file they keep their books in.")
    parser.add_argument("--fresh", action="store_true", help="Throw away what the ledger holds.")
    parser.add_argument("--url", default="http://127.0.0.1:0", help="Where to serve; port 0 takes a free one.")
    parser.add_argument("--seed", type=int, help="What bad luck is drawn from. Without it, all goes well.")
    parser.add_argument("--stall", metavar="ORDER", help="The first charge of this order is not answered.")
    parser.add_argument("--down", type=int, nargs=2, default=(0, 0), metavar=("FIRST", "END"), help="Charges refused.")
    parser.add_argument("--with-parent", action="store_true", help="End when standard input is closed.")
    return parser


if __name__ == "__main__":
    main()
