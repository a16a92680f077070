"""The texts of zkbackup in Chinese, by their English form (`messages`). Words follow ZooKeeper's usual Chinese terms.

Names of commands, flags, levels, proofs and error ids are not translated: users type them or search for them.
"""

from typing import Final

from logkeep.cli.terminal.chinese_errors import ERRORS
from logkeep.cli.terminal.chinese_findings import FINDINGS
from logkeep.cli.terminal.chinese_help import HELP
from logkeep.cli.terminal.chinese_restore import RESTORE

_NOUNS: Final = {
    "transaction": "{count} 个事务",
    "txn": "{count} 个事务",
    "round": "{count} 轮",
    "file": "{count} 个文件",
    "repair": "{count} 个修复",
    "backup": "{count} 个备份",
    "day": "{count} 天",
    "snapshot": "{count} 个快照",
    "log": "{count} 个日志",
    "digest": "{count} 个摘要",
    "znode": "{count} 个 znode",
    "session": "{count} 个会话",
    "ephemeral": "{count} 个临时节点",
    "unit": "{count} 个单元",
    "attempt": "{count} 次尝试",
}
_PROGRESS: Final = {
    "{done} of {total}": "{done} / {total}",
    "ETA {time}": "剩余 {time}",
    "{attempts} failed": "{attempts}失败",
    "took {time}": "耗时 {time}",
    "warning:": "警告:",
}
_LABELS: Final = {
    "snapshots": "快照",
    "logs": "事务日志",
    "damaged": "损坏的文件",
    "again": "重新复制",
    "verify": "验证",
}
_FINDINGS: Final = {
    "valid": "有效",
    "partial": "部分",
    "damaged": "损坏",
    "unverified": "未验证",
    "damage ": "损坏",
    "warning": "警告",
    "note   ": "提示",
    "not read back": "未读回",
    "unproven end": "末尾未确认",
    "Findings:": "发现的问题:",
    "try: ": "建议: ",
    "  ... and {hidden} more; --format=json has all": "  …… 另有 {hidden} 条；--format=json 显示全部",
}
_BACKUP: Final = {
    "Backup completed": "备份完成",
    "Backup completed, with warnings": "备份完成，有警告",
    "Backup written, but a file in it is damaged": "备份已写入，但其中有文件损坏",
    "Backup written, but transactions are lost": "备份已写入，但有事务丢失",
    "Backup written, but it cannot be restored": "备份已写入，但无法恢复",
    "Directory": "目录",
    "ZXID": "ZXID",
    "ZooKeeper": "ZooKeeper",
    "Snapshots": "快照",
    "Logs": "事务日志",
    "Size": "大小",
    "Took": "耗时",
    "Schemes": "认证方式",
    "Status": "状态",
    "Config": "配置文件",
    "{version} ({role}) at {host}": "{version}（{role}），{host}",
    "no answer from {host}": "{host} 没有应答",
    "{logs} with {transactions}": "{logs} 个，共 {transactions}",
    "{plain}, stored {stored}": "{plain}，压缩后 {stored}",
    "{time} in {rounds}": "{time}，{rounds}",
    "none seen": "未发现",
    "{schemes} (in ACLs)": "{schemes}（ACL 中）",
    "quality {score}/100 (level {level})": "质量评分 {score}/100（级别 {level}）",
    "not copied; --include-config copies zoo.cfg, myid and similar files": (
        "未备份；--include-config 备份 zoo.cfg、myid 等文件"
    ),
    "{files} copied, passwords replaced in {redacted}": "已备份 {files}，其中 {redacted} 个的密码已替换",
    "  left out: {line}": "  未备份: {line}",
    "            back up secrets yourself: {secrets}": "            安全敏感文件请自行备份: {secrets}",
    "keytabs are never copied; key stores, private keys and passwords only with --include-secrets": (
        "keytab 从不备份；密钥库、私钥和密码仅在 --include-secrets 时备份"
    ),
    "Next steps:": "下一步操作:",
}
_LIST: Final = {
    "ZooKeeper backups": "ZooKeeper 备份列表",
    "Backup base directory: {base}": "备份基础目录: {base}",
    "Backups: {total}": "总备份数: {total}",
    "Backup ID": "备份 ID",
    "Time": "时间",
    "none": "没有备份",
    "... and {hidden} more; --limit 0 shows all": "…… 另有 {hidden} 个；--limit 0 显示全部",
    "Status:": "状态说明:",
    "complete, can be restored": "备份完整可用",
    "damage was repaired or is in an older part; can be restored": "有损坏但已修复，或损坏在较早部分；可用",
    "cannot be restored, or its document cannot be read": "无法恢复，或元数据无法读取",
    "no verification has been completed": "尚未完成验证",
    "not read back: checked while it was copied; its files on disk were not read since": (
        "未读回: 复制时已检查，之后没有再读取磁盘上的文件"
    ),
    "unproven end: no server confirmed that its last transactions were committed": (
        "末尾未确认: 没有服务器确认最后的事务已提交"
    ),
    "it was never verified, or not to the end; `zkbackup verify` reports how good it is": (
        "从未验证，或验证没有完成；使用 `zkbackup verify` 检查"
    ),
    "`{command}` shows details": "使用 `{command}` 查看详细信息",
}
_INFO: Final = {
    "Backup details": "备份详细信息",
    "Backup ID: {name}": "备份 ID: {name}",
    "Location: {path}": "位置: {path}",
    "General:": "基本信息:",
    "  Taken: {time}": "  备份时间: {time}",
    "  ZXID: {zxid}": "  备份 ZXID: {zxid}",
    "  ZooKeeper version: {version}": "  ZooKeeper 版本: {version}",
    "  Source host: {host}": "  源主机: {host}",
    "not known": "未知",
    "Files:": "文件统计:",
    "  Snapshots: {count}": "  Snapshot 文件: {count} 个",
    "  Transaction logs: {count}": "  TxnLog 文件: {count} 个",
    "  Total size: {size}": "  总大小: {size}",
    "  Stored: {size}": "  压缩后: {size}",
    "Snapshots:": "Snapshot 文件:",
    "Transaction logs:": "TxnLog 文件:",
    "Verification:": "验证状态:",
    "  Files: {count}": "  总文件数: {count}",
    "  Valid: {count}": "  有效文件: {count}",
    "  Repaired: {count}": "  损坏已修复: {count}",
    "  Lost: {count}": "  无法恢复: {count}",
    "  Status: {status}": "  整体状态: {status}",
    "Quality score: {score}/100": "备份质量评分: {score}/100",
    "Quality score: not known": "备份质量评分: 未知",
    "  - Integrity: {state}": "  - 数据完整性: {state}",
    "  - Files: {state}": "  - 文件健康度: {state}",
    "  - Coverage: {state}": "  - 覆盖范围: {state}",
    "complete": "完整",
    "good": "良好",
    "fair ({repairs})": "一般（{repairs}）",
    "its end cannot be restored": "末尾无法恢复",
    "a gap in an older part": "较早部分有缺口",
    "Restore command:": "恢复命令:",
    "It was never verified, or not to the end. To check whether it can be restored:": (
        "从未验证，或验证没有完成。检查能否恢复:"
    ),
    "Its end cannot be restored. To see what can, and what --fix may repair:": (
        "备份末尾无法恢复。查看可以恢复的部分，以及 --fix 能修复什么:"
    ),
}
_PRUNE: Final = {
    "Prune old backups": "清理旧备份",
    "Backup directory: {base}": "备份目录: {base}",
    "Policy: {policy}": "清理策略: {policy}",
    "keep {days}": "保留 {days}",
    "keep any age": "不限天数",
    ", at most {count}": "，最多 {count} 个",
    ", at least {count}": "，最少 {count} 个",
    "Found:": "扫描结果:",
    "  Backups: {count}": "  总备份数: {count}",
    "  Beyond the limits of age or count: {count}": "  符合删除条件: {count}",
    "  Protected (newest good ones): {count}": "  受保护（最近的有效备份）: {count}",
    "  To delete: {count}": "  将删除: {count}",
    "To delete:": "待删除备份:",
    "{days} old": "{days}前",
    "{status} (skipped)": "{status}（跳过）",
    "Will free: {size}": "将释放空间: {size}",
    "To remove, left by killed runs:": "将清除中断运行的残留:",
    "delete {backups} of {base}?": "确认删除 {base} 中的 {backups}?",
    "delete {backups} of {base} and the leftovers of killed runs there ({rest})?": (
        "确认删除 {base} 中的 {backups}，以及中断运行的残留（{rest}）?"
    ),
    "Nothing was deleted: this was a dry run.": "没有删除任何备份: 这是模拟运行。",
    "Deleting...": "删除中...",
    "skipped: ": "跳过: ",
    "Done.": "完成！",
    "  Deleted: {backups}": "  删除: {backups}",
    "  Skipped: {backups}": "  跳过: {backups}",
    "  Freed: {size}": "  释放空间: {size}",
    "never verified": "从未验证",
}
_VERIFY: Final = {
    "Backup verification": "备份验证报告",
    "Taken: {time}": "备份时间: {time}",
    "ZXID: {zxid}": "备份 ZXID: {zxid}",
    "Level: {level}": "验证级别: {level}",
    "Directory: {state}": "目录结构: {state}",
    "Document: {state}": "元数据文件: {state}",
    "without {names}": "缺少 {names}",
    "changed since it was written": "写入后被修改",
    "part of a damaged file": "部分损坏",
    "Coverage:": "备份覆盖范围:",
    "  Earliest ZXID: {zxid}": "  最早 ZXID: {zxid}",
    "  Latest ZXID: {zxid}": "  最晚 ZXID: {zxid}",
    "  Can be restored to: {interval}": "  可恢复到: {interval}",
    "  Logs: {state}": "  TxnLog 覆盖: {state}",
    "no gaps": "完整",
    "the snapshot that an older part needs is lost": "较早部分需要的 snapshot 已丢失",
    "no point in time can be restored": "没有可恢复的时间点",
    "Repairs:": "修复:",
    "Result: {result}": "整体评估: {result}",
    "the backup can be restored": "备份可用",
    "the backup can be restored; part of it was repaired or is missing": "备份可用；有部分已修复或缺失",
    "the backup can be restored; a file in it is damaged": "备份可用；其中有文件损坏",
    "the end of the backup cannot be restored": "备份末尾无法恢复",
    "level {earlier} found damage before; level {level} is not deep enough to clear it": (
        "级别 {earlier} 曾发现损坏；级别 {level} 的检查深度不足以排除"
    ),
    "  - Status: {status}, quality {score}/100": "  - 状态: {status}，质量评分 {score}/100",
    "  - Replayed: {transactions}, {digests} compared": "  - 已重放 {transactions}，比对 {digests}",
    "Advice:": "建议:",
    "nothing to do; keep it as a restore point": "备份质量良好，建议保留此备份作为恢复点",
    "take a new backup, and keep this one until the new one is verified": "重新备份；在新备份通过验证之前保留此备份",
    "take a new backup now; restore from this one only to the intervals above": (
        "立即重新备份；此备份只能恢复到上面列出的区间"
    ),
    "take a new backup now; before a restore from this one, recover its document as the finding says": (
        "立即重新备份；用此备份恢复之前，请按上面的提示找回元数据文件"
    ),
    "  - to check whether the earlier damage is still there:": "  - 检查先前的损坏是否仍然存在:",
    "  - to repair it:": "  - 修复:",
    "  - nothing is lost; to store the affected files again:": "  - 没有数据丢失；重新保存受影响的文件:",
    "  - to repair what can be repaired, with the help of the other backups beside it:": (
        "  - 借助同目录的其他备份修复可修复的部分:"
    ),
}
_RESTORE: Final = {
    "Restore plan": "恢复计划",
    "Backup": "备份",
    "{name}, taken {time}, up to {zxid}": "{name}，备份时间 {time}，截至 {zxid}",
    "Tree at": "恢复到",
    "Left out": "不包含",
    "{moment} and everything later": "{moment} 及之后的全部事务",
    "sessions: {sessions}": "会话: {sessions}",
    "Data dir": "数据目录",
    "Log dir": "日志目录",
    "Replaces": "将替换",
    "nothing": "无",
    "{files}; kept beside the new data": "{files}；保留在新数据旁边",
    "Server at": "服务器",
    "{zxid} when it starts": "启动时为 {zxid}",
    "Epoch": "Epoch",
    "{epoch}, in both epoch files": "{epoch}，写入两个 epoch 文件",
    "not checked: ": "未检查: ",
    "in the way: ": "无法恢复: ",
    "THIS TREE IS NOT THE ONE THAT THE SERVER HAD: its digest at {zxid} differs": (
        "这不是服务器原有的数据: 在 {zxid} 处摘要不一致"
    ),
    "restore {name} to {path}?": "确认将 {name} 恢复到 {path}?",
    "continue the interrupted restore of {path}?": "确认继续 {path} 中断的恢复?",
    "roll back the last restore of {path}?": "确认回滚 {path} 最近一次恢复?",
    "Restore completed: {name} at {zxid}": "恢复完成！{name}，ZXID {zxid}",
    "Proof": "证明",
    "{digests} compared over {transactions}": "在 {transactions} 中比对了 {digests}",
    "Tree": "数据树",
    "Dropped": "已丢弃",
    "Receipt": "恢复报告",
    "The replaced data is kept in:": "被替换的数据保留在:",
    "1. Start ZooKeeper:": "1. 启动 ZooKeeper:",
    "2. Check its zxid:": "2. 验证 ZXID:",
    "   expected, until the first session: {zxid}": "   预期（第一个会话之前）: {zxid}",
    " (its tree is at {zxid})": "（数据树在 {zxid}）",
    "3. Check the data:": "3. 验证数据完整性:",
    "4. If it is not what you wanted, stop ZooKeeper and roll back:": "4. 如果恢复失败，可以停止 ZooKeeper 并回滚:",
    "If a Logkeep repository holds backups of this server, the next one needs --new-history.": (
        "如果 Logkeep 仓库中有此服务器的备份，下一次备份需要 --new-history。"
    ),
    "Restore {name}: {outcome}": "恢复 {name}: {outcome}",
    "the restored data is in place": "恢复的数据已就位",
    "the earlier data is back in place": "原有数据已恢复原位",
    "nothing was restored; run the restore again": "没有恢复任何数据；请重新执行恢复",
    "Receipt: {path}": "恢复报告: {path}",
    "Kept beside it:": "保留在旁边:",
    "Next: {step}": "下一步: {step}",
}
_ERRORS: Final = {
    "error:": "错误:",
    "at:": "位置:",
    "try:": "建议:",
    "the directory cannot be read": "目录无法读取",
    "run as the user that takes the backups": "请使用执行备份的用户运行",
    "there is no such directory of backups": "备份目录不存在",
    "name it with --backup-base-dir, or as backup.base_dir in zkbackup.yaml": (
        "使用 --backup-base-dir 指定，或在 zkbackup.yaml 中设置 backup.base_dir"
    ),
    "there is no backup with this id": "没有此 ID 的备份",
    "it cannot be read": "无法读取",
    "there is no such directory": "目录不存在",
    "name the directory of zoo.cfg": "请指定 zoo.cfg 所在的目录",
    "restore.backup_before_restore cannot be false: a restore never deletes the data that it replaces": (
        "restore.backup_before_restore 不能为 false: 恢复从不删除被替换的数据"
    ),
    "remove the key; delete the kept data by hand once you have checked the restored server": (
        "请删除该设置；确认恢复的服务器正常后，再手动删除保留的数据"
    ),
    "--to-zxid and --to-time name two points in time": "--to-zxid 和 --to-time 指定了两个时间点",
    "give one of them": "请只使用其中一个",
    "--continue and --rollback are opposites": "--continue 和 --rollback 互相矛盾",
    "--continue and --rollback have no dry run": "--continue 和 --rollback 不支持模拟运行",
    "leave --dry-run out": "请去掉 --dry-run",
    "the interrupted restore already has its point in time": "中断的恢复已有确定的时间点",
    "leave --to-zxid and --to-time out": "请去掉 --to-zxid 和 --to-time",
    "`zkbackup list` shows the ids": "使用 `zkbackup list` 查看备份 ID",
    "see docs/guides/zookeeper.md for the options": "选项说明见 docs/guides/zookeeper.md",
    "nothing was changed; pass --force to skip the question": "没有做任何修改；使用 --force 跳过确认",
    "see `zkbackup --help`": "参见 `zkbackup --help`",
    "`zkbackup verify` shows what is missing; recover the file from a copy": (
        "使用 `zkbackup verify` 查看缺少的文件；请从副本中找回"
    ),
    "`zkbackup verify` shows what is damaged; with --fix it repairs what can be repaired": (
        "使用 `zkbackup verify` 查看损坏；加上 --fix 修复可修复的部分"
    ),
    "wait for the other run, or choose another --backup-id": "请等待另一个运行结束，或使用其他 --backup-id",
    "run again": "请重新运行",
    "run again with --verbose; if it happens again, report the message and the log file": (
        "请加上 --verbose 重新运行；如果再次发生，请报告错误信息和日志文件"
    ),
}
CHINESE: Final = {
    **_NOUNS,
    **_PROGRESS,
    **_FINDINGS,
    **_BACKUP,
    **_LIST,
    **_INFO,
    **_PRUNE,
    **_VERIFY,
    **_RESTORE,
    **_ERRORS,
    **HELP,
}
SENTENCES: Final = {**_LABELS, **FINDINGS, **ERRORS, **RESTORE}
"""What errors, findings and restores say; `{}` is a value."""
COUNTED: Final = {
    **_NOUNS,
    "node": "{count} 个节点",
    "container node": "{count} 个容器节点",
    "process": "{count} 个进程",
    "processe": "{count} 个进程",
    "byte": "{count} 字节",
}
"""Nouns in those sentences."""
