"""`python -m engine.cli`, and the command `tailormt`."""

import signal
import sys


def start() -> int:
    """Run the command line. Ctrl-C while it is loading ends it at once, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from engine.cli.main import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
