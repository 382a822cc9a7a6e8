"""`python -m limitpoint` is the command `limitpoint`."""

import sys

from ._command import main

sys.exit(main())
