"""What Python 3.10 lacks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import NotRequired
elif sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    # Only type checkers tell them apart.
    from typing import Optional as NotRequired

__all__ = ["NotRequired"]
