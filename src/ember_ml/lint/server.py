"""The language server: diagnostics while typing, repairs of one finding or all, and the rule's explanation on hover.

Needs the optional dependency ``pygls`` (``pip install ember-ml[lsp]``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from urllib.parse import unquote, urlparse

from ember_ml.lint import suppressions
from ember_ml.lint.apply_fixes import fix_text, has_ops, import_edit
from ember_ml.lint.config import ConfigError, for_file, forget
from ember_ml.lint.finding import Finding
from ember_ml.lint.project import Project
from ember_ml.lint.rules import ALL
from ember_ml.lint.sources import module_name

SOURCE = "emberlint"


def start() -> int:
    """Serve on standard input and output until the client says goodbye."""
    try:
        server = build()
    except ImportError:
        print("emberlint: the language server needs pygls: pip install 'ember-ml[lsp]'", file=sys.stderr)
        return 2
    server.start_io()
    return 0


def path_of(uri: str) -> str:
    """Return the path of a file URI."""
    return unquote(urlparse(uri).path) if uri.startswith("file:") else uri


def analyse(uri: str, text: str) -> tuple[Project, list[Finding]]:
    """Return the findings in a document as it is in the editor."""
    path = path_of(uri)
    try:
        config = for_file(path)
    except ConfigError as error:
        return Project(), [Finding(path, 1, 1, 1, 1, "EMB903", str(error))]
    project = Project()
    project.add(path, module_name(path), text, config.settings(path))
    project.run()
    return project, project.findings(path)


def ignore_line(text: str, finding: Finding) -> tuple[int, str] | None:
    """Return where to put a comment that hides a finding, and the comment; None where a comment cannot stand there."""
    lines = text.split("\n")
    end = len("\n".join(lines[: finding.line]).rstrip("\r"))
    comment = f"  # emberlint: ignore[{finding.code}] say why"
    known = frozenset(ALL)
    before, after = (suppressions.read(t, known)[0] for t in (text, text[:end] + comment + text[end:]))
    return (end, comment) if len(after) > len(before) else None


def build():
    """Return a server with its handlers."""
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("emberlint", "1")

    def units(text: str, line: int, column: int) -> int:
        """Return a character column, counted from 1, in the protocol's UTF-16 units, counted from 0."""
        lines = text.split("\n")
        return len(lines[line - 1][: column - 1].encode("utf-16-le")) // 2 if line <= len(lines) else 0

    def position(text: str, offset: int) -> types.Position:
        line = text.count("\n", 0, offset) + 1
        start = text.rfind("\n", 0, offset) + 1
        return types.Position(line - 1, units(text, line, offset - start + 1))

    def span(text: str, finding: Finding) -> types.Range:
        return types.Range(
            types.Position(finding.line - 1, units(text, finding.line, finding.column)),
            types.Position(finding.end_line - 1, units(text, finding.end_line, finding.end_column)),
        )

    def diagnostic(text: str, finding: Finding) -> types.Diagnostic:
        severity = types.DiagnosticSeverity.Error if finding.code == "EMB900" else types.DiagnosticSeverity.Warning
        return types.Diagnostic(
            range=span(text, finding), message=finding.message, code=finding.code, source=SOURCE, severity=severity
        )

    def publish(uri: str, version: int | None) -> None:
        text = server.workspace.get_text_document(uri).source
        _, findings = analyse(uri, text)
        diagnostics = [diagnostic(text, finding) for finding in findings]
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        )

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        forget()
        publish(params.text_document.uri, None)

    def change(uri: str, text: str, edits: Iterable[tuple[int, int, str]]) -> types.WorkspaceEdit:
        """Return edits of a document, by the offsets of their start and end."""
        changes = [types.TextEdit(types.Range(position(text, a), position(text, b)), new) for a, b, new in edits]
        return types.WorkspaceEdit(changes={uri: changes})

    def quick_fix(uri: str, text: str, project: Project, finding: Finding) -> types.CodeAction:
        fix, path = finding.fix, path_of(uri)
        assert fix is not None
        edits = list(fix.edits)
        if fix.needs_ops and not has_ops(project, path):
            edits.append(import_edit(project, path, [project.files[path].settings.profile.import_line]))
        if fix.also_import:
            edits.append(import_edit(project, path, [fix.also_import]))
        return types.CodeAction(
            title=f"{finding.code}: {fix.title}" + ("" if fix.safe else " (can change results)"),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic(text, finding)],
            edit=change(uri, text, [(e.start, e.end, e.text) for e in edits]),
            is_preferred=fix.safe,
        )

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri).source
        project, findings = analyse(uri, text)
        result = []
        for finding in findings:
            where = span(text, finding)
            if where.end < params.range.start or params.range.end < where.start:
                continue
            if finding.fix is not None:
                result.append(quick_fix(uri, text, project, finding))
            place = ignore_line(text, finding)
            if place is not None:
                end, comment = place
                result.append(
                    types.CodeAction(
                        title=f"{finding.code}: ignore it on this line",
                        kind=types.CodeActionKind.QuickFix,
                        diagnostics=[diagnostic(text, finding)],
                        edit=change(uri, text, [(end, end, comment)]),
                    )
                )
        if any(finding.fix is not None and finding.fix.safe for finding in findings):
            repaired, count = fix_text(project, path_of(uri))
            result.append(
                types.CodeAction(
                    title=f"emberlint: make all {count} safe repairs",
                    kind=types.CodeActionKind.SourceFixAll,
                    edit=change(uri, text, [(0, len(text), repaired)]),
                )
            )
        return result

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri).source
        _, findings = analyse(uri, text)
        for finding in findings:
            where = span(text, finding)
            if where.start <= params.position <= where.end:
                rule = ALL[finding.code]
                value = f"**{finding.code} {rule.name}**\n\n{finding.message}\n\n{rule.why}"
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, value), where)
        return None

    return server
