"""Pages as a browser reads them."""

from __future__ import annotations

import re


def flat(html: str) -> str:
    """HTML with any white space as one blank, and none at the end of a tag: templates break lines where they like."""
    return re.sub(r"\s+", " ", html).replace(" >", ">")
