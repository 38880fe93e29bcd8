"""EMB903: a wrong configuration. Raised by the engine, not by the walk."""

from __future__ import annotations

from ember_ml.lint.rules.base import Rule


class BadConfiguration(Rule):
    """A wrong configuration."""

    code = "EMB903"
    name = "bad-configuration"
    message = "{0}"
    why = "A misspelled key would switch something off silently; emberlint stops with exit code 2 instead."
    reads = "toml"
    bad = (
        "[tool.emberlint]\nignored = ['EMB401']",
        "[tool.emberlint]\nignore = 'EMB401'",
        "[tool.emberlint]\nselect = ['EMB999']",
        "[tool.emberlint]\nstrict = 'yes'",
        "[tool.emberlint]\nprofile = 'nobody'",
        "[tool.emberlint.allow]\n'tests/**' = ['nunpy']",
        "[tool.emberlint.per-file-ignores]\n'tests/**' = 'EMB301'",
        "[tool.emberlint.profiles.mine]\nextends = 'nobody'",
        "[tool.emberlint.profiles.mine]\nname-spaces = ['mylib.math']",
        "[tool.emberlint\nstrict = true",
    )
    good = (
        "",
        "[tool.emberlint]",
        "[tool.ember-lint]\nignored = 1",
        "[tool.emberlint]\nignore = ['EMB4']",
        "[tool.emberlint]\nprofile = 'keras'",
        "[tool.emberlint.allow]\n'tests/**' = ['numpy']",
        "[tool.emberlint.per-file-ignores]\n'tests/**' = ['EMB301']",
        "[tool.emberlint.profiles.mine]\nextends = 'ember'\nnamespaces = ['mylib.math']",
        "[tool.emberlint]\nselect = ['ALL']\nstrict = true",
    )


RULE = BadConfiguration()
