"""The language server: diagnostics while typing, quick fixes, and the rule's explanation on hover.

Needs the optional dependency ``pygls`` (``pip install ember-ml[lsp]``).
"""

from __future__ import annotations

import sys
from urllib.parse import unquote, urlparse

from ember_ml.lint.apply_fixes import has_ops, import_edit
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

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri).source
        project, findings = analyse(uri, text)
        result = []
        for finding in findings:
            where = span(text, finding)
            if finding.fix is None or where.end < params.range.start or params.range.end < where.start:
                continue
            edits = list(finding.fix.edits)
            path = path_of(uri)
            if finding.fix.needs_ops and not has_ops(project, path):
                edits.append(import_edit(project, path, [project.files[path].settings.profile.import_line]))
            if finding.fix.also_import:
                edits.append(import_edit(project, path, [finding.fix.also_import]))
            changes = [
                types.TextEdit(types.Range(position(text, e.start), position(text, e.end)), e.text) for e in edits
            ]
            title = f"{finding.code}: {finding.fix.title}" + ("" if finding.fix.safe else " (can change results)")
            result.append(
                types.CodeAction(
                    title=title,
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic(text, finding)],
                    edit=types.WorkspaceEdit(changes={uri: changes}),
                    is_preferred=finding.fix.safe,
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
