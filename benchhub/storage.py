"""How static files are named and compressed."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise is untyped
    """Names carry a hash of the content, also inside `import` lines of ES modules, so they may be cached for ever."""

    support_js_module_import_aggregation = True

    max_post_process_passes = 10
    """A module's new name changes those that import it, one level of imports in a pass; ours are 5 deep."""
