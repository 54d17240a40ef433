"""Known defects of engine versions, a JSON file each; docs/known.md says how they are written."""
