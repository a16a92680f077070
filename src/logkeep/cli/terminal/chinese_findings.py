"""Chinese for what zkbackup finds: sentences of findings, repairs and verifications, with `{}` for values."""

from typing import Final

_BACKUP: Final = {
    "they come after records that differ from an earlier log": "它们位于与较早日志不同的记录之后",
    "the server is in epoch {} and has processed {}, its files end in epoch {}, at {}": (
        "服务器处于 epoch {}，已处理到 {}；其文件结束于 epoch {}，{}"
    ),
    "their files continue after that": "其文件在此之后仍有内容",
    "this is not the server of these directories, or it has lost what they contain": (
        "这不是这些目录的服务器，或者它丢失了目录中的数据"
    ),
    "the server has processed {}, its logs end at {}": "服务器已处理到 {}，其日志结束于 {}",
    "; {} to {} may not be committed": "；{} 到 {} 可能未提交",
    "their logs were at {} before it was asked, and it does not reach that": (
        "询问之前日志已到 {}，而服务器没有到达该位置"
    ),
    "this is not the server of these directories, or it waits for a majority that does not come": (
        "这不是这些目录的服务器，或者它在等待无法形成的多数派"
    ),
    "no log holds {} to {}": "没有日志包含 {} 到 {}",
    "damaged in the log": "在日志中损坏",
    "in no log of this member": "不在此成员的任何日志中",
    "{}: it is at {}, {}; its answer is not used{}": "{}: 它位于 {}，{}；不采用其应答{}",
    "check --zk-host: name the server that writes these directories": "请检查 --zk-host: 指定写入这些目录的服务器",
    "{} to {} contradict what was logged before them under the same zxids; this run is not archived": (
        "{} 到 {} 与之前相同 zxid 的记录矛盾；这一段不备份"
    ),
    "{} to {} are not kept: {}": "{} 到 {} 未保留: {}",
    "processed by the server, in no log": "服务器已处理，但不在任何日志中",
    "no server could be asked for its last zxid{}": "无法向服务器询问其最后的 zxid{}",
    "name a running server with --zk-host": "请用 --zk-host 指定正在运行的服务器",
    "no server writes a file of this name, and every server reads it; it is not copied": (
        "没有服务器会写这个名字的文件，但所有服务器都会读取它；未复制"
    ),
    "move it out of the directory: it can keep the server from starting": "请把它移出目录: 它可能使服务器无法启动",
    "{}: {}; it is not kept": "{}: {}；未保留",
    "being written, or never finished": "正在写入，或从未写完",
    "no whole snapshot was found: nothing can be restored from this member alone": (
        "没有找到完整的 snapshot: 仅靠此成员无法恢复任何数据"
    ),
    "restart the server, which writes one, or back up another member": "请重启服务器以生成 snapshot，或备份其他成员",
    "there is no log here, and no server could be asked whether there should be one": (
        "这里没有日志，也无法向服务器询问是否应该有日志"
    ),
    "there is no log here, and the server has processed {}, after its newest snapshot ({}): its logs are elsewhere": (
        "这里没有日志，而服务器在最新 snapshot（{1}）之后已处理到 {0}: 日志在其他目录"
    ),
    "the newest snapshot needs the log up to {}, which ends at {}": "最新的 snapshot 需要日志到 {}，而日志结束于 {}",
    "an older snapshot may do; a next backup will have the rest": (
        "较早的 snapshot 可能够用；下一次备份会包含其余部分"
    ),
    "; a later snapshot exists, so what comes after it can be restored": (
        "；存在更晚的 snapshot，因此其后的内容可以恢复"
    ),
    "check the disk of this server; other snapshots and the logs do without it": (
        "请检查此服务器的磁盘；其他 snapshot 和日志不需要它"
    ),
    "{} to {} were logged again, the same (byte {}); they are kept once": (
        "{} 到 {} 被重复记录，内容相同（字节 {}）；只保留一份"
    ),
    "check that the directories (--data-dir; --zk-data-dir of zkbackup) are those of the server that "
    "--zk-host names; ": ("请检查目录（zkbackup 的 --zk-data-dir）是否属于 --zk-host 指定的服务器；"),
    "byte {}, after {}": "字节 {}，在 {} 之后",
    "byte {}": "字节 {}",
    "member {}": "成员 {}",
    "its header was damaged; it holds no information, and the records are archived with a good one": (
        "文件头损坏；其中没有信息，记录已用正确的文件头保存"
    ),
    "{} at {}: transactions {} to {} cannot be read": "{1} 处 {0}: 事务 {2} 到 {3} 无法读取",
    "the last record was being written ({}); everything before it is archived": (
        "最后一条记录正在写入（{}）；之前的全部已备份"
    ),
    "a torn end ({}); the next record is in another file, nothing is lost": (
        "末尾不完整（{}）；下一条记录在另一个文件中，没有数据丢失"
    ),
    "{} at {}: what cannot be read here is undamaged elsewhere in the logs, nothing is lost": (
        "{1} 处 {0}: 此处无法读取的内容在其他日志中完好，没有数据丢失"
    ),
    "{}; {}, nothing is lost": "{}；{}，没有数据丢失",
    "another member, or an earlier backup, may have these transactions: back that up too": (
        "其他成员或较早的备份可能有这些事务: 请一并备份"
    ),
    "member {} has them": "成员 {} 有这些事务",
    "members {} have them": "成员 {} 有这些事务",
    "name what its zoo.cfg has as dataLogDir: --zk-log-dir of zkbackup, --log-dir of logkeep": (
        "请指定 zoo.cfg 中的 dataLogDir: zkbackup 使用 --zk-log-dir"
    ),
    "no log was found: {}": "没有找到日志: {}",
    "back up another member, or restart this one, which makes it write a snapshot": (
        "请备份其他成员，或重启此成员以生成 snapshot"
    ),
    "nothing could be restored from it: {}": "无法从中恢复任何数据: {}",
    "it holds a private key, which is copied only with --include-secrets": "包含私钥，仅在 --include-secrets 时备份",
    "a Kerberos keytab is never copied": "Kerberos keytab 从不备份",
    "a key store is copied only with --include-secrets": "密钥库仅在 --include-secrets 时备份",
    "too large for a configuration file": "作为配置文件太大",
    "it cannot be read ({})": "无法读取（{}）",
}
_FILES: Final = {
    "1 byte is missing at the end": "末尾缺少 1 个字节",
    "4 bytes are missing at the end": "末尾缺少 4 个字节",
    "8 bytes are missing at the end": "末尾缺少 8 个字节",
    "a length of {} bytes where {} are left": "长度为 {} 字节，而只剩 {} 字节",
    "a vector of {} elements in {} bytes": "{1} 字节中有 {0} 个元素的数组",
    "the gzip stream ends too early": "gzip 流过早结束",
    "not a snappy stream as a server writes it": "不是服务器写入的 snappy 流",
    "the snappy stream ends too early, or a block has an impossible length": "snappy 流过早结束，或数据块长度不可能",
    "there are bytes after the end of the gzip stream": "gzip 流结束后还有字节",
    "the gzip stream cannot be unpacked": "gzip 流无法解压",
    "a block of the snappy stream cannot be unpacked": "snappy 流中有数据块无法解压",
    "not a snapshot: it does not begin with ZKSN and version 2": "不是 snapshot: 开头不是 ZKSN 和版本 2",
    "there are bytes after the last checksum": "最后的校验和之后还有字节",
    "a checksum does not match the bytes before it": "校验和与之前的字节不符",
    "the file ends too early": "文件过早结束",
    "a list of {} entries": "有 {} 个条目的列表",
    "a node without a path": "没有路径的节点",
    "a length of {} bytes": "长度为 {} 字节",
    "a transaction of {} bytes": "{} 字节的事务",
    "{} bytes are left after a transaction": "事务之后剩余 {} 字节",
    "a path that is null": "路径为空",
    "{} bytes are left after a part of a multi": "multi 的一部分之后剩余 {} 字节",
    "a transaction of the unknown kind {}": "未知类型 {} 的事务",
    "the record after zxid {} {}": "zxid {} 之后的记录{}",
    "does not follow it": "与其不连续",
    "is damaged": "已损坏",
    "the log ends before byte {}": "日志在字节 {} 之前结束",
    "not a transaction log: it does not begin with ZKLG and version 2": "不是事务日志: 开头不是 ZKLG 和版本 2",
    "no zstd frame begins here": "此处不是 zstd 帧的开头",
    "a frame has a checksum, a dictionary or unknown flags": "帧带有校验和、字典或未知标志",
    "a frame does not state its content size": "帧没有给出内容大小",
    "a frame has a larger window than any that Logkeep writes": "帧的窗口大于本程序写入的任何窗口",
    "a frame says that it holds {} bytes": "帧声称包含 {} 字节",
    "a frame says that it holds more than its blocks can": "帧声称的内容超过其数据块的容量",
    "a frame is larger than the batch in it": "帧大于其中的批次",
    "a block of a frame is impossible": "帧中有不可能的数据块",
    "a frame cannot be unpacked": "帧无法解压",
    "at byte {}": "在字节 {}",
    "behind zxid {}": "在 zxid {} 之后",
    "lost {} to {}": "丢失 {} 到 {}",
    "{} to {}": "{} 到 {}",
    "{} to {}{}": "{} 到 {}{}",
    "holds {} instead of {} to {}": "包含 {}，而不是 {} 到 {}",
    "not the name of a snapshot": "不是 snapshot 的文件名",
    "a node comes before its parent": "节点出现在其父节点之前",
    "the ACLs of {} are not in the backup": "备份中没有 {} 的 ACL",
    "a record does not have the checksum that was written with it": "记录与写入时的校验和不符",
    "an impossible length": "长度不可能",
    "a record without its end mark": "记录没有结束标记",
    "a record whose zxid is not above the one before it": "记录的 zxid 不大于前一条",
    "a record that does not follow the one before it": "记录与前一条不连续",
    "the last record is incomplete": "最后一条记录不完整",
    "the first 16 bytes are not those of a transaction log": "前 16 个字节不是事务日志的开头",
    "the last record was being written, or the server was stopped while it was": (
        "最后一条记录正在写入，或服务器在写入时停止"
    ),
    "nothing is lost: the record had not been acknowledged; it is left out": "没有数据丢失: 该记录未被确认；已略去",
    "the log ends within a record": "日志在记录中间结束",
    "a log without a record": "没有记录的日志",
    "the header holds no information: --fix writes it again": "文件头没有信息: --fix 会重写",
    "nothing in it can be read": "其中没有可读取的内容",
    ", which the next log has again": "，下一个日志中也有",
    "only another member or an earlier backup can have these transactions: back up more members, or splice": (
        "只有其他成员或较早的备份可能有这些事务: 请备份更多成员，或拼接"
    ),
}
_VERIFY: Final = {
    "history {}": "历史 {}",
    "{} and {}": "{} 和 {}",
    "its end cannot be restored: {}": "末尾无法恢复: {}",
    "its end cannot be restored: {}; what can: {}": "末尾无法恢复: {}；可以恢复: {}",
    "nothing in it can be restored: {}": "其中没有可恢复的内容: {}",
    "what can be restored to: {}": "可恢复到: {}",
    "no member": "没有成员",
    "transactions between {} are missing on every member": "所有成员都缺少 {} 之间的事务",
    "{} has {} directly after {}: too few to know that epoch {} ended there, and these logs have no digests": (
        "{} 中 {} 紧接在 {} 之后: 不足以确定 epoch {} 在此结束，而且这些日志没有摘要"
    ),
    "back up a majority of the voters, or take a backup after the next snapshot": (
        "请备份多数投票成员，或在下一个 snapshot 之后备份"
    ),
    "{} to {} come after the accepted end of their epoch": "{} 到 {} 在其 epoch 公认的结束之后",
    "they were proposed and never committed; nothing is restored from them": "它们只被提议、从未提交；不会从中恢复",
    "{} hold different transactions under the same numbers, {} to {}": "{} 在相同编号 {} 到 {} 下有不同的事务",
    "they are not of one history: compare the members, and restore from one of them by name": (
        "它们不属于同一历史: 请比较各成员，并指定其中一个进行恢复"
    ),
    "the last transaction that it may contain in part is unknown": "它可能部分包含的最后事务未知",
    "digests may show it; else an older one is used until a later snapshot bounds it": (
        "摘要可能给出答案；否则使用较早的 snapshot，直到更晚的 snapshot 给出界限"
    ),
    "logs do not reach {}, where its tree becomes exact": "日志没有到达 {}，其数据树在那里才精确",
    "it cannot be used; an older one can, with the logs after it": "无法使用；较早的 snapshot 加上其后的日志可以使用",
    "restore the object from a copy, or splice what is lost from another member or an earlier backup": (
        "请从副本找回该对象，或从其他成员、较早的备份拼接丢失的部分"
    ),
    "archived transactions are gone": "已备份的事务丢失",
    "its content is undamaged, but the stored object is not what was written": (
        "内容完好，但保存的文件不是写入时的样子"
    ),
    "nothing of it is lost: a repair (`zkbackup verify --fix`, `logkeep zookeeper repair`) writes it again": (
        "没有数据丢失: 使用 `zkbackup verify --fix` 重新写入"
    ),
    "has {} bytes instead of {}": "有 {} 字节，而不是 {}",
    "its bytes are not those that were archived": "其字节与备份时不同",
    "it does not contain what the backup says about it": "内容与备份记载不符",
    "cannot be read: {}": "无法读取: {}",
    "bounded, no digest": "有界限，没有摘要",
    "exact only if a digest in the logs matches": "只有途中摘要一致时才精确",
    "the end of an epoch is believed, not proven": "epoch 的结束是推定的，未经证明",
    "no server was asked whether the last transactions were committed": "没有向服务器询问最后的事务是否已提交",
    "the last transactions are agreed by a majority": "最后的事务得到多数派确认",
    "the end of this epoch is missing: whether its last transactions here were committed is not known": (
        "缺少此 epoch 的结束: 这里最后的事务是否已提交未知"
    ),
    "transaction {} is not archived": "备份中没有事务 {}",
    "no snapshot is exact at or before {}": "在 {} 或之前没有精确的 snapshot",
    "no transaction is held, and no snapshot": "备份中既没有事务，也没有 snapshot",
    "transactions are missing between {}": "{} 之间缺少事务",
    "no point in time can be restored from this backup": "此备份没有可恢复的时间点",
    "the backup holds neither snapshots nor logs": "备份中既没有 snapshot，也没有日志",
    "the transactions of that time are not archived": "备份中没有那个时间的内容",
    "nothing proves that epoch {} ended with {}, so {} is out of reach": (
        "无法证明 epoch {} 结束于 {}，因此无法到达 {}"
    ),
    "a snapshot and the first log": "一个 snapshot 和第一个日志",
    "the digests of the server contradict it": "与服务器的摘要矛盾",
    "nothing proves that epoch {} ended with {}": "无法证明 epoch {} 结束于 {}",
    "the digest that the server wrote at {} is not the one of the replayed tree": (
        "服务器在 {} 写入的摘要与重放的数据树不符"
    ),
    "too many ends of epochs are in doubt": "过多 epoch 的结束存疑",
    "no digest on the way shows where its tree is exact": "途中没有摘要能说明其数据树在何处精确",
    "the logs end at {} instead of {}": "日志结束于 {}，而不是 {}",
    "ends at {} instead of {}": "结束于 {}，而不是 {}",
    "{} comes directly after {}": "{} 紧接在 {} 之后",
    "a real server does not start on it: {}; the end of its log: {}": "真实的服务器无法用它启动: {}；最后的输出: {}",
    "no server could check it: {}": "没有服务器能检查它: {}",
    "{} is in the server's tree only": "{} 只在服务器的数据树中",
    "do not restore from it before this is understood": "在弄清原因之前不要用它恢复",
    "and {}": "以及 {}",
    "{} is not in the server's tree": "{} 不在服务器的数据树中",
    "{} differs in {}": "{} 的 {} 不同",
    "when it was taken: ": "备份时: ",
    "nothing is restored from it; an older point, another member or an earlier backup may be undamaged": (
        "不会从中恢复；较早的时间点、其他成员或较早的备份可能完好"
    ),
    "the empty tree": "空数据树",
    "nothing proves that an epoch ended with {} before {}": "无法证明有 epoch 在 {1} 之前结束于 {0}",
    "at {} the server wrote the digest {}, and the replay has {}: transactions are missing or changed before it": (
        "服务器在 {} 写入摘要 {}，而重放得到 {}: 之前有事务缺失或被修改"
    ),
    "at {} its tree is not the one that an older snapshot leads to": "在 {}，其数据树与从较早 snapshot 重放的不同",
    ", in counters of children only": "，只有子节点计数不同",
    "back up a majority of the voters": "请备份多数投票成员",
    "only one member was backed up: whether others have the same transactions was not checked": (
        "只备份了一个成员: 没有检查其他成员是否有相同的事务"
    ),
    "back up more members to check it": "请备份更多成员以便检查",
    "a verification at level {} found damage before; level {} checks less": (
        "级别 {} 的验证曾发现损坏；级别 {} 检查得更少"
    ),
    "verify it at level {} again, or with --fix": "请用级别 {} 重新验证，或加上 --fix",
    "it was taken up to {}, and no file contains its end": "备份到 {}，但没有文件包含其末尾",
    "restore what is missing from a copy, or take a new backup": "请从副本找回缺少的部分，或重新备份",
    "copy the bundle again; a restore does not need it": "请重新复制该备份；恢复不需要它",
    "the backup's document does not name it; it is never read": "备份的元数据中没有它；从不读取",
    "it was damaged, no other backup had it, and a repair dropped it: {} cannot be restored": (
        "它已损坏，没有其他备份包含它，修复时已舍弃: {} 无法恢复"
    ),
    "the damaged file is in {}; another copy of this backup may have a good one": (
        "损坏的文件在 {}；此备份的其他副本可能有完好的文件"
    ),
    "a directory that every backup has is missing": "缺少每个备份都有的目录",
    "a document that every backup has is missing": "缺少每个备份都有的文件",
    "move it away if you do not need it here": "如果这里不需要它，请移走",
}
_NOTES: Final = {
    "Its header was damaged and was written anew; every record is here": "文件头损坏，已重新写入；所有记录完好",
    "Nothing here proves that these transactions were committed": "没有证据表明这些事务已提交",
    "A record was being written; everything before it is here": "有记录正在写入；之前的全部内容都在",
    "The file ends within a record": "文件在记录中间结束",
    "Something is wrong in the file; this is what could be read in one run": "文件有问题；这是能连续读取的部分",
    "it is not used; an older one with the logs after it gives the same": (
        "不使用它；较早的 snapshot 加上其后的日志结果相同"
    ),
    "move it out of version-2; it is not read here": "请移出 version-2；这里不读取它",
    "no server writes such a name, and every server reads it": "没有服务器写这样的名称，但所有服务器都会读取",
}
_REPAIRS: Final = {
    "trimmed after its last transaction; nothing is lost": "在最后一个事务之后截断；没有数据丢失",
    "stored again; every record was good": "已重新保存；所有记录完好",
    "its header was rewritten; nothing is lost": "已重写文件头；没有数据丢失",
    "the damaged part was replaced from another backup, byte for byte; nothing is lost": (
        "损坏部分已用其他备份逐字节替换；没有数据丢失"
    ),
    "the good parts are kept as logs of their own": "完好的部分保留为单独的日志",
    "{}: damaged, and no other backup has it; it is no longer used; {}": (
        "{}: 已损坏，且没有其他备份包含它；不再使用；{}"
    ),
    "{}: restored from another backup, byte for byte": "{}: 已从其他备份逐字节恢复",
    "{} can no longer be restored": "{} 再也无法恢复",
    "every point in time can be restored without it": "没有它也能恢复所有时间点",
    "; lost transactions {}": "；丢失事务 {}",
    ", lost transactions {}": "，丢失事务 {}",
    "; other backups disagree on some of them": "；其他备份对其中一些不一致",
    ", others do not agree on {}": "，其他备份对 {} 不一致",
    "nothing was repaired: the document was changed since it was written": "没有修复: 元数据文件写入后被修改",
    "the directory for temporary files": "临时文件目录",
    "a compressed log cannot be unpacked there": "无法在那里解压日志",
}
FINDINGS: Final = {**_BACKUP, **_FILES, **_VERIFY, **_NOTES, **_REPAIRS}
