'''The command line: parse, call one function, render one report.

A verb is about forty lines. This one would live in `cli/verbs/backups.py`:

    class DeleteReport(msgspec.Struct, frozen=True, kw_only=True):
        backup: int
        freed_bytes: int                    # integers in JSON, units in names
        dry_run: bool

    def _text(report: DeleteReport, look: Look) -> str:
        done = "would delete" if report.dry_run else "deleted"
        return look.text(f"{done} {report.backup} · {size(report.freed_bytes)}")

    @verb(
        report=DeleteReport,                # the JSON document, and its published schema
        text=_text,                         # the same for people; pure
        options=(REPO, SOURCE),             # from config.options; those in verb.COMMON come by themselves
        arguments=(click.Argument(["backup"]),),
        exits=(41, 43, 50, 51, 52),         # beside 0, 1, 40, 130, 143; listed by --help
        exit_code=lambda report: 0,         # read off the report: 10 for damage, 2 for warnings
        changes=True,                       # adds -n/--dry-run and -y/--yes
        metrics=None,                       # Outcome -> samples; adds --metrics-file
    )
    def delete(run: Run, backup: str) -> DeleteReport:
        """Delete one backup.                (first line: also its summary in the catalogue)

        More text for --help.
        """
        plan = plan_delete(open_repository(run.repo()), run[SOURCE], backup)
        run.confirm(f"delete backup {plan.backup}?")        # --yes and --dry-run answer; no terminal = Declined
        if not run.dry_run:
            carry_out(plan, clock=run.clock, token=run.token, progress=run.progress())
        return DeleteReport(backup=plan.backup, freed_bytes=plan.bytes, dry_run=run.dry_run)

Then add its line to `catalogue.VERBS` and run `make reference`, which writes its help, schema and options to
docs/reference/. What a verb may rely on:

    run[OPTION]          a setting, typed; `run.settings.origin(OPTION)` tells where it came from
    run.settings.secret  fetches a secret by its reference
    run.repo()           the repository's URL, or a UsageError that says how to name one
    run.console          .note and .warn print to stderr, redacted; stdout belongs to the report
    run.confirm          asks; `typed="name"` wants that word typed
    run.progress()       a ProgressSink for the engine
    run.clock, run.token time and randomness
    run.cache            the user's cache directory
    run.line             for a run of many rounds: one line of the answer now, with --json a document in a line
    run.tell             for the same: update --metrics-file now
    run.closing(close)   called when the run ends, whichever way
    logging              `logging.getLogger(__name__).info("text", extra={"key": value})`, anywhere

Errors are raised from `logkeep.errors` and shown by `main` in three parts. Modules: `catalogue` names the verbs,
`groups` finds them, `verb` declares one, `run` carries one out, `console`, `look` and `progress` print, `failures` and
`crash` show what went wrong, `logs` and `metrics` tell others, `exits` has the exit codes, `reference` writes the
reference pages.
'''
