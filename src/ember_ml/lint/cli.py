"""The command ``emberlint``.

Exit codes: 0 nothing found, 1 findings, 2 something could not be checked: a wrong configuration or option, a path that
does not exist, a file that cannot be read or parsed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import textwrap

from ember_ml.lint import rules, sources
from ember_ml.lint.config import Config, ConfigError, with_options
from ember_ml.lint.finding import Finding
from ember_ml.lint.runner import Input, check, read_inputs, read_stdin

CLEAN, FOUND, FAILED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["rule"]:
        return show_rules(arguments[1:])
    if arguments[:1] == ["rules"]:
        return list_rules()
    if arguments == ["--version"]:
        from importlib.metadata import version

        print(f"emberlint {version('ember-ml')}")
        return CLEAN
    if arguments[:1] == ["server"]:
        from ember_ml.lint.server import start

        return start()
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return FAILED if stop.code else CLEAN
    try:
        return run(options)
    except ConfigError as error:
        print(f"emberlint: EMB903 {error}", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"emberlint: no such file or folder: {error}", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emberlint",
        description="Find what ties code to one tensor library or loses precision, explain it, and repair it.",
        epilog="Also: 'emberlint rules', 'emberlint rule CODE', 'emberlint server' (for editors), '--version'.",
    )
    parser.add_argument("paths", nargs="*", default=["."], help="files and folders, - for stdin (default: here)")
    parser.add_argument("--fix", action="store_true", help="write safe repairs into the files")
    parser.add_argument("--diff", action="store_true", help="show what --fix would change, write nothing")
    parser.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also repairs that can change results"
    )
    parser.add_argument("--strict", action="store_true", help="also report values that may be tensors")
    parser.add_argument("--select", type=_codes, help="only these rules (codes or prefixes, comma-separated, ALL)")
    parser.add_argument("--extend-select", type=_codes, default=[], help="these rules as well")
    parser.add_argument("--ignore", type=_codes, default=[], help="not these rules")
    parser.add_argument("--profile", help="the library whose conventions hold: ember, keras, array-api, tensorly")
    parser.add_argument("--format", choices=("text", "json", "sarif", "github", "gitlab"), default="text")
    parser.add_argument("--baseline", help="a file with the number of findings that are still allowed; it only shrinks")
    parser.add_argument(
        "--write-baseline", action="store_true", help="create the baseline from the present findings, or shrink it"
    )
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: one per core for large trees)")
    parser.add_argument("--no-cache", action="store_true", help="look at every file again")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    return parser


def _codes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def run(options: argparse.Namespace) -> int:
    """Check, and repair if asked."""

    def adjust(config: Config) -> Config:
        return with_options(
            config,
            select=options.select,
            extend_select=options.extend_select,
            ignore=options.ignore,
            strict=options.strict,
            profile=options.profile,
        )

    adjust(Config())  # a wrong option is wrong even where there is nothing to check
    if options.jobs < 0:
        raise ConfigError("--jobs must not be negative")
    is_stdin = options.paths == ["-"]
    if is_stdin and options.fix:
        raise ConfigError("--fix writes into files; for stdin, --diff shows what it would change")
    inputs = [read_stdin(adjust)] if is_stdin else read_inputs(options.paths, adjust)
    repaired = 0
    if options.fix or options.diff:
        repaired, changed = repair(inputs, unsafe=options.unsafe_fixes, write=not options.diff)
        if options.diff:
            return FOUND if changed else CLEAN
        inputs = read_inputs(options.paths, adjust)
    jobs = options.jobs or (os.cpu_count() or 1 if len(inputs) > 400 else 1)
    result = check(inputs, jobs=jobs, use_cache=not (options.no_cache or is_stdin))
    findings = sorted(result.findings, key=Finding.sort_key)
    findings = _through_baseline(findings, inputs, options)
    _print(findings, inputs, options, repaired)
    if any(finding.code == "EMB900" for finding in findings):
        return FAILED
    return FOUND if findings else CLEAN


def _print(findings: list[Finding], inputs: list[Input], options: argparse.Namespace, repaired: int) -> None:
    from ember_ml.lint.formats import FORMATS

    named = {finding.path for finding in findings}
    texts = {item.path: _text(item) for item in inputs if item.path in named}
    output = FORMATS[options.format](findings, texts)
    if options.format == "text" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        output = _colour(output)
    if output:
        print(output.encode("utf-8", "backslashreplace").decode("utf-8"))
    if options.format == "text" and not options.quiet:
        fixable = sum(1 for finding in findings if finding.fix is not None and finding.fix.safe)
        parts = [f"{_count(len(findings), 'finding')} in {_count(len(inputs), 'file')}"]
        if repaired:
            parts.append(f"{repaired} repaired")
        if fixable:
            parts.append(f"{fixable} can be repaired with --fix")
        print("; ".join(parts), file=sys.stderr)


def _colour(text: str) -> str:
    """Return the text for a terminal: places bold, codes and marks red."""
    text = re.sub(r"^(\S.*?:\d+:\d+:) (EMB\d+)", "\033[1m\\1\033[0m \033[31m\\2\033[0m", text, flags=re.MULTILINE)
    return re.sub(r"^( +)(\^+)$", "\\1\033[31m\\2\033[0m", text, flags=re.MULTILINE)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _text(item: Input) -> str:
    try:
        return item.text()
    except sources.Undecodable:
        return ""


def _through_baseline(findings: list[Finding], inputs: list[Input], options: argparse.Namespace) -> list[Finding]:
    from ember_ml.lint import baseline

    config = inputs[0].config if inputs else Config()
    path = options.baseline or (os.path.join(config.root, config.baseline) if config.baseline else None)
    if path is None:
        if options.write_baseline:
            raise ConfigError("--write-baseline needs --baseline FILE, or baseline in [tool.emberlint]")
        return findings
    present = baseline.count(findings)
    if not os.path.exists(path):
        if not options.write_baseline:
            raise ConfigError(f"{path}: the baseline does not exist; create it with --write-baseline")
        baseline.save(path, present)
        return baseline.apply(findings, present)
    allowed = baseline.load(path)
    smaller = baseline.shrink(allowed, present, {item.path.replace(os.sep, "/") for item in inputs})
    if smaller != allowed:
        baseline.save(path, smaller)
    return baseline.apply(findings, allowed)


def repair(inputs: list[Input], *, unsafe: bool, write: bool) -> tuple[int, int]:
    """Repair files; return the number of repairs and of files."""
    from ember_ml.lint.apply_fixes import fix_text
    from ember_ml.lint.project import Project
    from ember_ml.lint.runner import add

    project = Project()
    problems: dict[str, list[Finding]] = {}
    for item in inputs:
        add(project, item, problems)
    project.run()
    total = changed = 0
    for item in inputs:
        file = project.files.get(item.path)
        if file is None or file.flow is None:
            continue
        old = file.flow.module.source
        new, count = fix_text(project, item.path, unsafe=unsafe)
        if new == old:
            continue
        total += count
        changed += 1
        if write:
            with open(item.path, "wb") as stream:
                stream.write(encoded(item, new))
        else:
            sys.stdout.writelines(_diff(item.path, old, new))
    return total, changed


def _diff(path: str, old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    return [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]


def encoded(item: Input, text: str) -> bytes:
    """Return the repaired text as the file's bytes: its encoding, byte order mark and line ends."""
    if item.is_notebook:
        return sources.notebook_bytes(item.data, text)
    import codecs
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(item.data).readline)
    if b"\r\n" in item.data:
        text = text.replace("\n", "\r\n")
    mark = codecs.BOM_UTF8 if item.data.startswith(codecs.BOM_UTF8) else b""
    return mark + text.encode("utf-8" if mark else encoding)


def list_rules() -> int:
    """Print one line per rule."""
    for code, rule in rules.ALL.items():
        meaning = (type(rule).__doc__ or "").partition("\n")[0]
        print(f"{code}  {rule.name:24} {'' if rule.default else '(opt-in) '}{meaning}")
    return CLEAN


def explain(code: str) -> str:
    """Return a rule in full: message, reason, examples, repair."""
    rule = rules.ALL[code]
    parts = [
        f"{code} {rule.name}{'' if rule.default else ' (opt-in)'}",
        "",
        rule.message,
        "",
        textwrap.fill(rule.why, 100),
    ]
    for title, examples in (("Found:", rule.bad), ("Not found:", rule.good)):
        if examples:
            parts += ["", title]
            parts += [textwrap.indent(example.replace("  # bad", ""), "    ") + "\n" for example in examples[:4]]
    replacements = type(rule).fix is not rules.Rule.fix
    parts.append("Has a repair (--fix)." if replacements else "Has no automatic repair.")
    return "\n".join(parts)


def show_rules(codes: list[str]) -> int:
    """Explain rules."""
    unknown = [code for code in codes if code not in rules.ALL]
    if unknown or not codes:
        problem = f"there is no rule {unknown[0]}" if unknown else "say which rule: emberlint rule EMB401"
        print(f"emberlint: {problem}; 'emberlint rules' lists them", file=sys.stderr)
        return FAILED
    for code in codes:
        print(explain(code))
    return CLEAN


if __name__ == "__main__":
    sys.exit(main())
