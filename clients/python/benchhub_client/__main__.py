"""`python -m benchhub_client` is `bh`."""

import sys

from .command_line import main

sys.exit(main())
