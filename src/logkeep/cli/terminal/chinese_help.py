"""The part of zkbackup's Chinese catalogue that `--help` prints: commands, options, exit codes."""

from typing import Final

_PAGES: Final = {
    "Usage: ": "用法: ",
    "Options": "选项",
    "Commands": "命令",
    "Exit codes": "退出码",
    "default": "默认",
    "Show the version and exit.": "显示版本。",
    "Show this message and exit.": "显示此帮助。",
    "Show the help of a command.": "显示命令的帮助。",
    "Print the completion script for a shell.": "输出 shell 的补全脚本。",
    'For bash, put `eval "$(zkbackup completion bash)"` into ~/.bashrc.': (
        '使用 bash 时，把 `eval "$(zkbackup completion bash)"` 写入 ~/.bashrc。'
    ),
    "Back up, verify and restore one ZooKeeper server, any version from 3.4 to 3.9.": (
        "备份、验证和恢复一台 ZooKeeper 服务器，支持 3.4 到 3.9 的所有版本。"
    ),
    "Settings come from flags, then ZKBACKUP_SECTION_KEY variables, ./zkbackup.yaml (or --config FILE), "
    "~/.zkbackup.yaml and /etc/zkbackup/config.yaml, in this order. For ensembles, incremental backups and object "
    "stores use `logkeep zookeeper`.": (
        "设置的优先级（从高到低）: 命令行参数、ZKBACKUP_SECTION_KEY 环境变量、./zkbackup.yaml（或 --config FILE）、"
        "~/.zkbackup.yaml、/etc/zkbackup/config.yaml。集群、增量备份和对象存储请使用 `logkeep zookeeper`。"
    ),
    "Back up one server while it runs.": "在线备份一台服务器。",
    "Put a backup in place of a stopped server's data.": "用备份替换已停止的服务器的数据。",
    "Check that a backup can be restored, and repair what can be repaired.": "检查备份能否恢复，并修复可修复的部分。",
    "List the backups of a directory.": "列出目录中的备份。",
    "Show all about one backup.": "显示一个备份的详细信息。",
    "Delete backups that are no longer needed.": "清理不再需要的备份。",
    "Copies the snapshots, then the logs up to the last complete record that the server has committed, and repeats "
    "until the newest snapshot is covered. The directory of the backup appears only when it is complete.": (
        "先复制 snapshot，再复制事务日志，直到服务器已提交的最后一条完整记录；重复执行，"
        "直到最新的 snapshot 被完全覆盖。备份完成之后才会出现备份目录。"
    ),
    "The server must be stopped. By default the tree is restored as it was at the end of the backup; --to-zxid and "
    "--to-time choose another point in time. One that cannot be proven is refused, with a list of those that can.": (
        "服务器必须停止。默认恢复到备份末尾；--to-zxid 和 --to-time 选择其他时间点。无法证明的时间点会被拒绝，"
        "并列出可以恢复的时间点。"
    ),
    "Checks that every file exists, every byte is as it was written, no transaction is missing, and that the "
    "resulting tree is the one the server had. The verdict is stored with the backup; `zkbackup list` shows it.": (
        "检查所有文件是否存在、每个字节是否与写入时一致、有没有缺失的事务，以及重放得到的数据树是否与服务器一致。"
        "验证结果保存在备份中，`zkbackup list` 会显示。"
    ),
    "The status is that of the last stored verification. No data is read, so this is quick however large the backups "
    "are.": "状态来自最近一次保存的验证结果。不读取数据，因此无论备份多大都很快。",
    "Reads only its document; `zkbackup verify` reads the data itself.": (
        "只读取元数据；`zkbackup verify` 会读取数据本身。"
    ),
    "The newest --keep-min-count good backups are always kept. Of the others, those older than --keep-days are "
    "deleted, and those beyond the newest --keep-count. Damaged ones are skipped unless --delete-damaged is given.": (
        "始终保留最近 --keep-min-count 个有效备份。其余备份中，删除超过 --keep-days 天的，"
        "以及超出最近 --keep-count 个的。跳过损坏的备份，除非使用 --delete-damaged。"
    ),
}
_OPTIONS: Final = {
    "ZooKeeper's dataDir, or its version-2 directory.": "ZooKeeper dataDir 路径，或其中的 version-2 目录。",
    "ZooKeeper's dataLogDir, or its version-2 directory.": "ZooKeeper dataLogDir 路径，或其中的 version-2 目录。",
    "the data directory": "数据目录",
    "Server to ask for its state and last zxid.": "ZooKeeper 主机地址，用于获取状态和 ZXID。",
    "Timeout for answers of the server.": "等待服务器应答的时间。",
    "Directory of the backups; each gets a directory below it.": "备份输出目录；每个备份是其中的一个目录。",
    "Directory of the backups.": "备份基础目录。",
    "Directory of the backup.": "备份目录路径。",
    "Name of the backup.": "备份 ID。",
    "Verify the backup after it is written.": "备份后立即验证。",
    "Compression of the stored files.": "压缩方式。",
    "1 (fastest) to 9 (smallest).": "压缩级别，1（最快）到 9（最小）。",
    "Trim the end of the log that is being written without a warning.": "截断正在写入的日志的末尾，不产生警告。",
    "Number of files to copy in parallel.": "并发复制文件数。",
    "Copy zoo.cfg, myid and similar files too, with passwords removed.": "同时备份 zoo.cfg、myid 等文件，去掉密码。",
    "Copy them unchanged, with jaas.conf and key stores; never keytabs.": (
        "原样备份配置文件，包括 jaas.conf 和密钥库；从不备份 keytab。"
    ),
    "Directory of zoo.cfg, java.env and jaas.conf.": "zoo.cfg、java.env 和 jaas.conf 所在的目录。",
    "the usual places": "常用位置",
    "Do not ask for confirmation.": "不进行确认（危险）。",
    "Show what would be done; change nothing.": "模拟运行，不实际执行。",
    "Do not verify the backup first. Not recommended.": "跳过恢复前的验证（不推荐）。",
    "Restore the tree as it was after this transaction.": "恢复到指定 ZXID。",
    "the end of the backup": "备份末尾",
    "Restore the tree as it was at this time, without anything later.": "恢复到指定时间，不包含之后的事务。",
    "`drop` removes all sessions and their ephemeral znodes.": "`drop` 删除所有会话和临时节点。",
    "One exact snapshot of that point in time, or the archived files with the last log cut.": (
        "该时间点的一个精确 snapshot，或原有文件（最后一个日志被截断）。"
    ),
    "Also restore across ends of epochs that are not proven (before 3.6).": (
        "允许跨越未经证明的 epoch 末尾（3.6 之前的版本）。"
    ),
    "Restore although digests of the server contradict the tree. The receipt records the reason.": (
        "即使与服务器的摘要不一致也恢复。原因记录在恢复报告中。"
    ),
    "The target is a member of an ensemble: write epoch files.": "目标是集群成员: 写入 epoch 文件。",
    "An epoch that was in use; the restored epoch is higher.": "已使用过的 epoch；恢复后的 epoch 更大。",
    "Version of the server that will start, to refuse data that it cannot load.": (
        "将要启动的服务器版本；拒绝它无法加载的数据。"
    ),
    "Finish an interrupted restore of these directories.": "继续这些目录中断的恢复。",
    "Restore the data that these directories had before the last restore.": "回滚: 还原最近一次恢复之前的数据。",
    "Repair what can be repaired; originals are kept.": "自动修复损坏的文件；保留原文件。",
    "Depth: names and sizes, all checksums, a full replay, or a real server started on a copy.": (
        "深度: 文件名和大小、全部校验和、完整重放，或用副本启动真实的服务器。"
    ),
    "Delete backups that are older; 0: any age is kept.": "保留天数，删除更早的备份；0: 不限。",
    "Maximum number of backups to keep.": "保留数量。",
    "0, no limit": "0，不限制",
    "Minimum number of good backups to keep, whatever their age.": "最少保留的有效备份数量。",
    "Delete damaged backups too, by the same rules.": "按同样的规则删除损坏的备份。",
    "Text, or one JSON document.": "输出格式: 文本，或一个 JSON 文档。",
    "A table, one JSON document, or one id per line.": "输出格式: 表格、一个 JSON 文档，或每行一个 ID。",
    "Sort order, newest or largest first.": "排序方式，最新或最大的在前。",
    "Maximum number of backups to show; 0: all.": "限制显示数量；0: 全部。",
    "Read this file instead of ./zkbackup.yaml.": "读取此文件，代替 ./zkbackup.yaml。",
    "Log details.": "详细输出。",
    "No progress, and only errors in the log.": "不显示进度，日志中只有错误。",
    "Prometheus textfile to update after the run.": "运行后更新的 Prometheus 文本文件。",
    "Least important message to log.": "日志级别。",
    "Log lines as text or JSON.": "日志格式: 文本或 JSON。",
    "Where the log goes; stdout is not used with JSON output.": "日志输出位置；输出 JSON 时不使用 stdout。",
    "The log file, with --log-output file.": "日志文件路径（--log-output file）。",
    "Treat a longer transaction record as damage.": "超过此大小的事务记录视为损坏。",
    "the size of the file": "文件大小",
    "Bytes to read at a time.": "每次读取的字节数。",
    "Fail a verification that takes longer.": "验证超时时间。",
    "no limit": "不限制",
    "warn where the log goes to stderr": "输出到 stderr 时为 warn",
}
_EXITS: Final = {
    "success": "成功",
    "a fault of this program": "本程序的错误",
    "finished, with warnings or repairs": "完成，有警告或修复",
    "the user declined, or could not be asked": "用户取消，或无法询问用户",
    "verification failed: damage": "验证失败: 有损坏",
    "backup failed, or a disk or store is full": "备份失败，或磁盘、存储空间已满",
    "data gap: the source deleted data before it was backed up": "数据缺口: 数据在备份之前已被删除",
    "restore failed": "恢复失败",
    "target unsafe: not empty, running, or of another source": "目标不安全: 非空、正在运行，或来自另一个源",
    "usage or configuration error, or this host cannot run it": "用法或配置错误，或本机无法运行",
    "permission denied, or an object lock forbids it": "权限不足，或对象锁禁止操作",
    "ended by SIGINT (Ctrl-C)": "被 SIGINT（Ctrl-C）中断",
    "ended by SIGTERM": "被 SIGTERM 终止",
}
HELP: Final = {**_PAGES, **_OPTIONS, **_EXITS}
