"""The Markdown pages of the reference. Each function is pure: declarations in, text out."""

from collections.abc import Iterator
from typing import Any

import click

from logkeep import errors
from logkeep.cli.frame.catalogue import VERBS, VerbEntry
from logkeep.cli.frame.error_text import as_json
from logkeep.cli.frame.exit_codes import ALWAYS, EXITS
from logkeep.cli.frame.metrics import METRICS
from logkeep.config.option import Option
from logkeep.config.options import OPTIONS, PLAIN_VARIABLES

_MADE = "<!-- Made by `make reference`; edit the declarations in src/logkeep, not this page. -->\n\n"


def all_pages() -> dict[str, str]:
    """File name → text."""
    pages = {
        "options.md": options_page(),
        "exit-codes.md": exit_codes_page(),
        "errors.md": errors_page(),
        "metrics.md": metrics_page(),
        "json.md": json_page(),
        "commands.md": commands_page(),
    }
    return {name: _MADE + text for name, text in pages.items()}


def options_page() -> str:
    head = """# Options

Every option can be given in several places; the strongest that names it wins:

1. flag
2. environment variable (an empty one counts as not set)
3. `./logkeep.yaml`, or in its place the file that `--config` or `LOGKEEP_CONFIG` names
4. user file: `$XDG_CONFIG_HOME/logkeep/config.yaml` (`~/.config/logkeep/config.yaml`), then `~/.logkeep.yaml`
5. `/etc/logkeep/config.yaml`
6. default

A YAML key `section.key` is written as `key:` below `section:`. Unknown keys, duplicate keys and values of the wrong
type are errors; an unknown `LOGKEEP_` variable is a warning. `logkeep config show` prints each value with its origin,
`logkeep config validate` shows all mistakes at once. A key `sources.NAME.key` is for one source: for runs with that
`--source`, and for members of a backup set.

`./logkeep.yaml` is read only if the file and its directory belong to you or root and no one else can write to them;
otherwise the run ends with 40, and `--config ./logkeep.yaml` says that you trust the file. Settings for Spark that may
name code (options for Java, jars, listeners, modules, any text that is not a number, a size, a time or a switch) are
refused in it: pass them as flags, or put them into your own file. [Files](files.md) has all rules.

Sizes: `16MiB`, `16M` or `16777216` (K, M, G, T are powers of 1024). Durations: `10s`, `5m`, `24h`, `7d`, `2w`, also
joined (`1h30m`). Parts: `1/7`, `2.5%`, `0.1`. Lists: repeat the flag, separate by commas in a
variable, write a YAML list.

Secrets are never given as values of flags or YAML keys, only by reference: the key with `_file` (a file that only its
owner can read), with `_command` (run without a shell; its output is the secret), as `env:NAME` or `file:PATH`, or in
the key's own variable.

| flag | YAML key | variables | default | meaning |
|---|---|---|---|---|
"""
    rows = [_option_row(option) for option in OPTIONS]
    others = "".join(f"| `{name}` | {text} |\n" for name, text in PLAIN_VARIABLES.items())
    other_head = "\n## Other variables\n\n| variable | meaning |\n|---|---|\n"
    colour = "| `NO_COLOR` | Set to anything: no colours, unless --color says otherwise. |\n"
    return head + "".join(rows) + other_head + others + colour


def _option_row(option: Option[Any]) -> str:
    flags, keys, variables = [], [], []
    for spelling in option.spellings():
        short = f"-{option.short}, " if option.short else ""
        metavar = f" {spelling.kind.metavar}" if spelling.kind.metavar and not option.counted else ""
        flags += [f"`{short}{spelling.flag}{metavar}`"] * bool(spelling.flag)
        keys += [f"`{spelling.key}`"] * bool(spelling.key)
        keys += [f"`sources.NAME.{spelling.key.rpartition('.')[2]}`"] * option.per_source
        variables += [f"`{name}`" for name in spelling.variables]
    cells = (_joined(flags), _joined(keys), _joined(variables), default_of(option), option.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def default_of(option: Option[Any]) -> str:
    if option.default_text:
        return option.default_text
    return "" if option.default in (None, (), False) or option.counted else f"`{option.kind.show(option.default)}`"


def _joined(parts: list[str]) -> str:
    return "<br>".join(parts)


def exit_codes_page() -> str:
    rows = "".join(f"| {code} | {meaning} | {_verbs_with(code)} |\n" for code, meaning in EXITS.items())
    always = ", ".join(map(str, ALWAYS))
    return f"""# Exit codes

An unknown non-zero code is a failure. Signals take precedence over errors, errors over warnings; the first error wins.
Every command can return {always}; `--help` of a command lists all its codes.

| code | meaning | commands |
|---|---|---|
{rows}"""


def _verbs_with(code: int) -> str:
    if code in ALWAYS:
        return "all"
    return ", ".join(f"`{entry.words}`" for entry in VERBS if code in entry.load().exits)


def errors_page() -> str:
    general = ", ".join(sorted(f"`{kind.slug()}`" for kind in errors.OF_THE_VERB))
    head = f"""# Errors

Each error says what happened, to what, and what to do next. The name is the `error` field of the JSON error document;
it does not change. "Retry" says whether running the same command again can help. A command that
backs up ends with 20, and one that restores with 30, for kinds that say little:
{general}.

| name | exit code | retry | meaning | what to do |
|---|---|---|---|---|
"""
    return head + "".join(_error_row(kind, depth) for kind, depth in _tree(errors.LogkeepError, 0))


def _tree(kind: type[errors.LogkeepError], depth: int) -> Iterator[tuple[type[errors.LogkeepError], int]]:
    yield kind, depth
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)


def _error_row(kind: type[errors.LogkeepError], depth: int) -> str:
    meaning = " ".join((kind.__doc__ or "").split())
    retry = "yes" if kind.retry_helps else "no"
    return f"| {'&nbsp;&nbsp;' * depth}`{kind.slug()}` | {kind.exit_code} | {retry} | {meaning} | {kind.remedy} |\n"


def metrics_page() -> str:
    rows = "".join(f"| `{metric.name}` | {metric.help} |\n" for metric in METRICS.values())
    return f"""# Metrics

`--metrics-file FILE` (or `metrics.file`) writes values for node_exporter's textfile collector when a run ends, also
when it failed. All are gauges with the label `source`. One file may serve several sources and commands: values of other
runs stay. The file is replaced in one step and has mode 0644, because the collector runs as another user. Its directory
may belong to the collector, but a directory that every user or a shared group can write to is refused, unless it has
the sticky bit. A file with other content, or a symbolic link, is left alone, and the run is refused before it starts.
When the file cannot be written after the work is done, exit code 0 becomes 2.

`kafka backup` writes `logkeep_backup_*` except the counts of files and of damaged pieces, also when it fails; `status`
writes `logkeep_backup_last_success_timestamp_seconds` of what the repository really holds; `verify` writes
`logkeep_verify_*`. `logkeep_backup_success` is also 1 for a completed backup with gaps, which exit code 21 reports.

Alert rules to start from: [`docs/alerts/logkeep.rules.yaml`](../alerts/logkeep.rules.yaml).

| metric | meaning |
|---|---|
{rows}"""


def json_page() -> str:
    rows = ((e.words, f"schemas/{e.words.replace(' ', '-')}.json") for e in VERBS)
    verbs = "".join(f"| `{words}` | [`{path}`]({path}) |\n" for words, path in rows)
    example = as_json(errors.RepositoryMissing("there is no repository here", subject="file:///backups"))
    return f"""# JSON

With `--json` a command prints exactly one JSON document on stdout; everything else goes to stderr. The contract:

- Every document has `schema_version` (an integer) first and `verb` (the command's words) second.
- Within one `schema_version` fields are only ever added. Readers must accept unknown fields and
  unknown values of enumerations.
- Sizes are integers in bytes, times are RFC 3339 in UTC, backup ids are integers. One text is an exception and
  deprecated: `verified` of `list` and `info`, and `last_verified` of `status`, have a time in another form and a
  level. Read `verified_at` and `verified_level`, `last_verified_at` and `last_verified_level` instead.
- `--dry-run` prints the same document as the real run.
- The exit code has the same meaning with and without `--json`.

A run of many rounds (`kafka backup --follow`) prints a document for each round, in a line of its own, with the same two
fields first and `round` third; the last line is the report of the whole run. Its schema describes a round as
`KafkaRound`.

When a command fails, stdout stays empty (or ends with the last round) and the last line on stderr is one JSON document:

```json
{example}
```

`error` is a name from [errors.md](errors.md), `exit_code` a code from [exit-codes.md](exit-codes.md).

| command | schema |
|---|---|
{verbs}"""


def commands_page() -> str:
    return "# Commands\n\n" + "\n".join(_command(entry) for entry in VERBS)


def _command(entry: VerbEntry) -> str:
    context = click.Context(
        entry.load(),
        info_name=f"logkeep {entry.words}",
        terminal_width=100,
        max_content_width=100,
        help_option_names=["-h", "--help"],
    )
    return f"## logkeep {entry.words}\n\n```\n{context.get_help()}\n```\n"
