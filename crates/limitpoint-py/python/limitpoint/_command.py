"""The command `limitpoint`: the command line of the program, called as a library."""

import signal
import sys

from . import _core


def main() -> int:
    """Does what the words of the command line say and gives the exit code."""
    # the command line listens to Ctrl-C itself where it has to, and ends by it elsewhere; Python's listener would swallow it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["limitpoint", *sys.argv[1:]])
