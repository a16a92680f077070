'''The command line: parse, call one function, render one report.

A verb is about forty lines. This one would be in `cli/verbs/repository/prune.py`:

    class DeleteReport(msgspec.Struct, frozen=True, kw_only=True):
        backup: int
        freed_bytes: int                    # integers in JSON, units in names
        dry_run: bool

    def _text(report: DeleteReport, look: TerminalStyle) -> str:
        done = "would delete" if report.dry_run else "deleted"
        return look.text(f"{done} {report.backup} · {size(report.freed_bytes)}")

    @verb(
        report=DeleteReport,                # the JSON document, and its published schema
        text=_text,                         # the same as text; pure
        options=(REPO, SOURCE),             # from config.options; those in verb.COMMON are added
        arguments=(click.Argument(["backup"]),),
        exits=(41, 43, 50, 51, 52),         # besides 0, 1, 40, 130, 143; listed by --help
        exit_code=lambda report: 0,         # from the report: 10 for damage, 2 for warnings
        changes=True,                       # adds -n/--dry-run and -y/--yes
        metrics=None,                       # CommandOutcome -> samples; adds --metrics-file
    )
    def delete(run: Run, backup: str) -> DeleteReport:
        """Delete one backup.                (first line: also its summary in the catalogue)

        More text for --help.
        """
        plan = plan_delete(chosen_source(run), backup)
        run.confirm(f"delete backup {plan.backup}?")        # not with --yes or --dry-run; raises Declined
        if not run.dry_run:
            carry_out(plan, clock=run.clock, token=run.token, progress=run.progress())
        return DeleteReport(backup=plan.backup, freed_bytes=plan.bytes, dry_run=run.dry_run)

Where the work loads numpy, pyarrow or a client, options, arguments, exits, changes, examples and the help text are a
`Declaration` in the `declarations.py` beside it: `@verb(DELETE, report=…, text=…)`. The catalogue names both, so that
the parser and `--help` load the declaration only.

Then add its line to `frame.catalogue.VERBS` and run `make reference`, which writes its help, schema and options to
docs/reference/. What a verb can use:

    run[OPTION]          a setting, typed; `run.settings.origin(OPTION)` is where it came from
    run.settings.secret  fetches a secret by its reference
    run.repo()           the repository's URL; raises UsageError when none is set
    run.console          .note and .warn print to stderr, redacted; stdout belongs to the report
    run.confirm          asks the user; with `typed="name"` the user has to type that word
    run.progress()       a ProgressSink for the engine
    run.clock, run.token time and randomness
    run.cache            the user's cache directory
    run.line             for a run of many rounds: print one line of the answer, with --json a document in a line
    run.update_metrics   for the same: update --metrics-file now
    run.closing(close)   called when the run ends, however it ends
    logging              `logging.getLogger(__name__).info("text", extra={"key": value})`, anywhere

Errors are classes of `logkeep.errors`; `frame.program` shows them in three lines. `frame` carries out the commands of
both programs, `terminal` prints, `wiring` opens what the settings name, `verbs` are the commands of `logkeep`,
`zkbackup` is the second program, `demo` the story of `logkeep demo`, `reference` writes the reference pages.
'''
