"""stdout is the answer, stderr is everything else, the exit code is one of the table: as a script sees it."""

import json
import re
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from logkeep.cli.frame.catalogue import SECTIONS, VERBS
from tests.support.cli.processes import REAL, ROOT, TRIAL, clean_environment, logkeep


def test_version_as_text_and_json(tmp_path: Path) -> None:
    text = logkeep("version", home=tmp_path)
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.startswith("logkeep 0.1.0 (Python 3.")
    document = json.loads(logkeep("version", "--json", home=tmp_path).stdout)
    assert list(document)[:2] == ["schema_version", "verb"]
    assert (document["schema_version"], document["verb"]) == (1, "version")


def test_version_works_with_a_broken_configuration(tmp_path: Path) -> None:
    (tmp_path / "logkeep.yaml").write_text("]")
    assert logkeep("version", home=tmp_path, env={"LOGKEEP_GC_AGE": "x"}).returncode == 0
    assert logkeep("config", "show", home=tmp_path).returncode == 40


@pytest.mark.parametrize("shell", ("bash", "zsh", "fish"))
def test_completion_scripts(tmp_path: Path, shell: str) -> None:
    done = logkeep("completion", shell, home=tmp_path)
    assert done.returncode == 0
    assert "_LOGKEEP_COMPLETE" in done.stdout
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False).returncode == 0


def test_completion_of_verbs_and_flags(tmp_path: Path) -> None:
    def complete(words: str, index: int) -> str:
        env = {"_LOGKEEP_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
        return logkeep(home=tmp_path, env=env).stdout

    assert "plain,config" in complete("logkeep co", 1)
    assert "plain,validate" in complete("logkeep config ", 2)
    assert "plain,--log-format" in complete("logkeep version --log", 2)


def test_config_show_prints_origins_and_no_url_password(tmp_path: Path) -> None:
    (tmp_path / "logkeep.yaml").write_text("gc:\n  age: 2d\n")
    env = {"LOGKEEP_REPO": "https://user:geheim99@host/x"}
    done = logkeep("config", "show", "--json", "--keep-last", "3", home=tmp_path, env=env)
    assert "geheim99" not in done.stdout + done.stderr
    shown = {s["key"]: (s["value"], s["origin"], s["detail"]) for s in json.loads(done.stdout)["settings"]}
    assert shown["gc.age"] == ("2d", "file", "logkeep.yaml:2")
    assert shown["repository.url"] == ("https://***@host/x", "environment", "LOGKEEP_REPO")
    assert shown["retention.keep_last"] == ("3", "flag", "--keep-last")
    assert shown["gc.interval"] == ("4h", "default", "")


def test_config_validate_shows_every_problem(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("gc: {age: x}\nfoo: 1\n")
    done = logkeep("config", "validate", "--config", "my.yaml", "--json", home=tmp_path)
    assert done.returncode == 40
    assert len(json.loads(done.stdout)["problems"]) == 2
    text = logkeep("config", "validate", home=tmp_path, env={"LOGKEEP_CONFIG": "my.yaml"}).stdout
    assert text.count("FAIL") == 2
    assert "my.yaml:2" in text
    good = logkeep("config", "validate", home=tmp_path)
    assert (good.returncode, good.stdout) == (0, "OK    no configuration file; defaults are used\n")


def test_reports_match_their_published_schemas(tmp_path: Path) -> None:
    for words in ("version", "config show", "config validate", "completion bash"):
        name = words.removesuffix(" bash").replace(" ", "-")
        schema = json.loads((ROOT / "docs" / "reference" / "schemas" / f"{name}.json").read_text())
        jsonschema.validate(json.loads(logkeep(*words.split(), "--json", home=tmp_path).stdout), schema)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    (
        (("confg",), ("there is no command confg", "did you mean config?")),
        (("config", "shw"), ("there is no command shw", "did you mean show?")),
        (("fold",), ("there is no command fold", "did you mean kafka fold?")),
        (("backup",), ("there is no command backup", "did you mean app backup, kafka backup")),
        (("version", "--jsn"), ("there is no option --jsn", "did you mean --json?")),
        (("--repo", "x", "version"), ("there is no option --repo", "logkeep COMMAND --repo")),
        (("kafka", "show", "--topic", "orders"), ("there is no option --topic", "`logkeep kafka show TOPIC[")),
        (("info", "--id", "7"), ("there is no option --id", "without an option: `logkeep info ")),
        (("version", "extra"), ("unexpected extra argument", "--help")),
        (("completion",), ("SHELL is missing", "--help")),
        (("completion", "tcsh"), ("'tcsh' is not one of", "--help")),
        (("completion", "bsh"), ("'bsh' is not one of", "did you mean bash?")),
        (("config", "show", "--limit-upload", "x"), ("--limit-upload must be a size", "16MiB")),
        (("config", "show", "--config", "none.yaml"), ("no such configuration file", "check the path")),
        (("config", "show", "--log-file", "/none/x"), ("log file cannot be written", "--log-file")),
        (("store", "probe"), ("URL is missing", "--help")),
    ),
)
def test_usage_errors_have_three_parts_and_code_40(
    tmp_path: Path, arguments: tuple[str, ...], parts: tuple[str, str]
) -> None:
    done = logkeep(*arguments, home=tmp_path)
    assert done.returncode == 40
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert parts[0] in lines[0]
    assert lines[-1].startswith("  try: ")
    assert parts[1] in lines[-1]


def test_errors_as_json(tmp_path: Path) -> None:
    done = logkeep("config", "show", "--json", "--keep-last", "x", home=tmp_path)
    assert done.stdout == ""
    document = json.loads(done.stderr)
    assert list(document) == ["schema_version", "type", "error", "message", "subject", "remedy", "exit_code"]
    assert (document["error"], document["exit_code"]) == ("usage-error", 40)
    assert json.loads(logkeep("config", "shw", "--json", home=tmp_path).stderr)["exit_code"] == 40


def test_no_arguments_show_help_and_fail(tmp_path: Path) -> None:
    done = logkeep(home=tmp_path)
    assert (done.returncode, done.stdout) == (40, "")
    assert "Other commands:" in done.stderr
    asked = logkeep("--help", home=tmp_path)
    assert (asked.returncode, asked.stderr) == (0, "")


def test_the_help_has_every_command_once_below_a_heading(tmp_path: Path) -> None:
    text = logkeep("--help", home=tmp_path).stdout
    first = {entry.words.split()[0] for entry in VERBS}
    listed = re.findall(r"^  ([a-z-]+) {2,}[A-Z]", text.partition("\nBegin:\n")[2], re.MULTILINE)
    assert sorted(listed) == sorted({*first, "help"})
    assert [f"\n{heading}:\n" for heading in SECTIONS if f"\n{heading}:\n" not in text] == []
    assert "\nCommands:\n" in logkeep("kafka", "--help", home=tmp_path).stdout


def test_help_lists_exit_codes(tmp_path: Path) -> None:
    text = logkeep("change", "--help", home=tmp_path, program=TRIAL).stdout
    exits = text.partition("Exit codes:")[2]
    assert [int(line.split()[0]) for line in exits.splitlines() if line.strip()] == [0, 1, 2, 3, 10, 20, 40, 130, 143]
    assert "-n, --dry-run" in text
    assert "-r, --repo URL" in text


def test_dry_run_and_yes_need_no_terminal(tmp_path: Path) -> None:
    def change(*flags: str) -> subprocess.CompletedProcess[str]:
        return logkeep("change", "-r", "x", *flags, home=tmp_path, program=TRIAL)

    assert change("-n").stdout == "would change x …\n"
    assert change("-y").stdout == "changed x …\n"
    refused = change()
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "--yes" in refused.stderr


def test_a_verb_may_stand_below_a_verb(tmp_path: Path) -> None:
    done = logkeep("change", "twice", "--yes", home=tmp_path, program=TRIAL)
    assert (done.returncode, done.stdout) == (0, "overwritten\n")


def test_missing_repository_names_all_ways_to_set_it(tmp_path: Path) -> None:
    done = logkeep("change", "-y", home=tmp_path, program=TRIAL)
    assert done.returncode == 40
    assert "LOGKEEP_REPO" in done.stderr


@pytest.mark.parametrize("code", (0, 2, 10))
def test_the_report_decides_the_exit_code(tmp_path: Path, code: int) -> None:
    assert logkeep("end", str(code), home=tmp_path, program=TRIAL).returncode == code


def test_a_reader_that_closes_the_pipe_is_no_error(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    with subprocess.Popen(
        [*TRIAL, "end", "10"], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(120) == 10


def test_an_answer_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*REAL, "version"],
            env=clean_environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 40
    assert done.stderr.splitlines()[0] == "error: the answer could not be written: No space left on device"


@pytest.mark.parametrize(("number", "code"), ((signal.SIGINT, 130), (signal.SIGTERM, 143)))
def test_signals_close_everything_and_have_their_codes(tmp_path: Path, number: int, code: int) -> None:
    env = clean_environment(tmp_path)
    command = [*TRIAL, "wait", "--source", "s", "--metrics-file", "x.prom"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(120) == code
    assert "closed" in rest
    assert rest.startswith("error: ")
    assert "Traceback" not in rest
    assert 'logkeep_backup_success{source="s"} 0.0' in (tmp_path / "x.prom").read_text()


def test_unknown_variables_warn_once_on_stderr(tmp_path: Path) -> None:
    env = {"LOGKEEP_REPOO": "x"}
    done = logkeep("config", "show", home=tmp_path, env=env)
    assert done.stderr == "warning: unknown variable LOGKEEP_REPOO: did you mean LOGKEEP_REPO?\n"
    assert logkeep("config", "show", "-q", home=tmp_path, env=env).stderr == ""


@pytest.mark.parametrize(
    "env", ({"LANG": "C"}, {"LANG": "", "LC_ALL": "C"}, {"LANG": "", "LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "ascii"})
)
def test_ascii_where_the_locale_is_not_utf8(tmp_path: Path, env: dict[str, str]) -> None:
    done = logkeep("change", "-n", "-r", "ü", home=tmp_path, program=TRIAL, env=env)
    assert done.stdout == "would change \\xfc ...\n"
    answer = json.loads(logkeep("change", "-n", "-r", "ü", "--json", home=tmp_path, program=TRIAL, env=env).stdout)
    assert answer["text"] == "would change ü …"


def test_utf8_where_the_locale_says_so(tmp_path: Path) -> None:
    assert logkeep("change", "-n", "-r", "ü", home=tmp_path, program=TRIAL).stdout == "would change ü …\n"


def test_progress_as_lines_on_stderr(tmp_path: Path) -> None:
    done = logkeep("work", home=tmp_path, program=TRIAL)
    assert done.stdout == "worked\n"
    first, warning, last = done.stderr.splitlines()
    assert first == "copy: 0%, 0/2 units, 0 B of 4.0 KiB"
    assert warning == "warning: one thing"
    assert last.startswith("copy: 2/2 units, 4.0 KiB of 4.0 KiB, took ")
    assert logkeep("work", "-q", home=tmp_path, program=TRIAL).stderr == "warning: one thing\n"


_LOADED = """
import sys
from logkeep.cli.frame.main import logkeep
program = logkeep()
program.call(["version"], program.real_world([]))
print(sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""


def test_the_version_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("rich", "yaml", "prometheus_client", "pyspark", "pyarrow", "obstore", "numpy", "stamina")
    done = logkeep(*heavy, home=tmp_path, program=(REAL[0], "-c", _LOADED))
    assert done.stdout.splitlines()[-1] == "[]"
