"""Where `python3 benchhub-ci` begins; this file alone must be readable to every Python."""

import sys

if sys.version_info < (3, 8):  # noqa: UP036 - it is another Python than BenchHub's
    sys.stderr.write("benchhub-ci: this is Python %d.%d; it needs 3.8 or newer.\n" % sys.version_info[:2])  # noqa: UP031
    sys.exit(3)

from clients.benchhub_ci.command_line import main

if __name__ == "__main__":
    sys.exit(main())
