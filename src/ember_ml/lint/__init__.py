"""emberlint: finds what ties code to one tensor library or loses precision, explains it, and repairs most of it."""

from __future__ import annotations

from ember_ml.lint.finding import Finding
from ember_ml.lint.project import Project, Settings, lint_source

__all__ = ["Finding", "Project", "Settings", "lint_source"]
