"""`python -m agents.site` is `manage.py site-worker`."""

from __future__ import annotations

import sys

from agents.site.worker import main

if __name__ == "__main__":
    main(sys.argv[1:])
