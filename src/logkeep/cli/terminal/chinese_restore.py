"""Chinese for what a restore of zkbackup refuses, cannot check, or advises, with `{}` for values."""

from typing import Final

_TARGET: Final = {
    "it belongs to {}, and {} to {}": "它属于 {}，而 {} 属于 {}",
    "check how it came there; if the server wrote it: chown -h {} {}": (
        "请检查它的来历；如果是服务器写入的: chown -h {} {}"
    ),
    "it is a link, and a restore follows none": "它是链接，恢复不跟随链接",
    "find out who made it; then: rm {}": "请查明是谁创建的；然后: rm {}",
    "the process that works as the owner of the directory has ended": "以目录所有者身份工作的进程已结束",
    "it belongs to {}, and this process cannot become that user: {}": "它属于 {}，而此进程无法切换到该用户: {}",
    "run the same command with sudo -u '#{}'; root needs CAP_SETUID and CAP_SETGID for it": (
        "请用 sudo -u '#{}' 运行同一命令；root 需要 CAP_SETUID 和 CAP_SETGID"
    ),
    "the process of the owner sent no descriptor": "所有者的进程没有发送描述符",
    "{} can make this path lead elsewhere, and the directory belongs to {}": "{} 可以使此路径指向别处，而目录属于 {}",
    "user {}": "用户 {}",
    "run the same command with sudo -u '#{}'; or give the directories above {} to root or to that user, and "
    "make none of them writable for a group or for all": (
        "请用 sudo -u '#{}' 运行同一命令；或把 {} 之上的目录交给 root 或该用户，并取消组和所有人的写权限"
    ),
    "user id {}": "用户 ID {}",
    "a group or every user": "某个组或所有用户",
    "free space on this file system, then run the restore again": "请在此文件系统释放空间，然后重新恢复",
    "it was removed at once": "它立即被删除",
    "run as the user that owns the directory, or as root": "请用目录的所有者或 root 运行",
    "check the file system, then run the restore again": "请检查文件系统，然后重新恢复",
    "{} bytes are to be written, and {} are free": "需要写入 {} 字节，而空闲 {} 字节",
    "free space; replaced data is kept there too": "请释放空间；被替换的数据也保留在那里",
    "no restore has left a journal there": "那里没有恢复留下的日志",
    "its journal was replaced by one of other directories": "其恢复日志被其他目录的日志替换",
    "run again": "请重新运行",
    "there is nothing to continue or roll back": "没有可以继续或回滚的恢复",
    "the old data has changed since the restore was interrupted": "恢复中断后原有数据已改变",
    "roll back, which loses nothing, and restore again": "请回滚（不会丢失数据），然后重新恢复",
    "{} made this journal, so it is not followed": "此恢复日志由 {} 创建，因此不采用",
    "this journal belongs to a restore of other directories": "此恢复日志属于其他目录的恢复",
    "if a restore wrote it: chown {} {}; otherwise: mv {} {}": "如果是恢复写入的: chown {} {}；否则: mv {} {}",
    "it came with a copy of a directory: move it away": "它随目录副本而来: 请移走",
    "the journal in {} names this directory for restore {}, but this directory has no pointer to that journal": (
        "{} 中的恢复日志把此目录列入恢复 {}，但此目录没有指向该日志"
    ),
    "this is not the journal of a restore": "这不是恢复的日志",
    "check whether its file system is mounted, and what wrote the journal": (
        "请检查其文件系统是否已挂载，以及恢复日志由谁写入"
    ),
    "it is too large": "它太大",
    "restore to a directory on a local file system, and copy its version-2 while the server is stopped; NFS "
    "supports locks when it is mounted with local_lock=flock": (
        "请恢复到本地文件系统的目录，并在服务器停止时复制其 version-2；NFS 以 local_lock=flock 挂载时支持锁"
    ),
    "its file system has no locks, so a second restore could run at once: {}": (
        "其文件系统没有锁，可能同时运行第二个恢复: {}"
    ),
    "another restore is running there": "那里正在运行另一个恢复",
    "wait until it has ended, then run again": "请等待它结束，然后重新运行",
    "mount it so that it can be written to, or name another directory": "请以可写方式挂载，或指定其他目录",
    "run as the user that the server runs as, or as root": "请用服务器的运行用户或 root 运行",
    "restore {} was interrupted between the old data and the new": "恢复 {} 在新旧数据交换时中断",
    "it has no {}, but it has {}: it does not look like the directory of a server": (
        "没有 {}，却有 {}: 不像服务器的目录"
    ),
    "continue it or roll it back first": "请先继续或回滚它",
    "the old data is missing: there is nothing to roll back to": "原有数据缺失: 没有可以回滚到的数据",
    "its file system is mounted read-only": "其文件系统以只读方式挂载",
    "this user may not write there": "此用户不能写入那里",
    "it belongs to another user": "它属于其他用户",
    "if it was moved, move it back there and roll back again; if it was deleted, only the restored data is "
    "left: keep it (--continue ends an interrupted restore), or restore a backup": (
        "如果被移走，请移回并再次回滚；如果被删除，只剩恢复的数据: 请保留它（--continue 结束中断的恢复），或恢"
        "复一个备份"
    ),
    "it is a mount point: nothing can be staged beside it on the same file system": (
        "它是挂载点: 无法在同一文件系统的旁边准备数据"
    ),
    "mount the volume at {} and make {} a directory in it; or restore to another directory and copy the "
    "files while the server is stopped": (
        "请把卷挂载到 {}，并使 {} 成为其中的目录；或恢复到其他目录，在服务器停止时复制文件"
    ),
    "name dataDir (and dataLogDir) as the server's zoo.cfg has them": (
        "请按服务器的 zoo.cfg 指定 dataDir（和 dataLogDir）"
    ),
    "a directory of the restore is missing": "缺少恢复的目录",
    "check whether its file system is mounted, and run again": "请检查其文件系统是否已挂载，然后重新运行",
    "run as the user that owns it, or as root": "请用其所有者或 root 运行",
    "it is a link that {} made": "它是 {} 创建的链接",
    "it is a link to {}, which does not belong to {} together with the directory that it is in": (
        "它是指向 {} 的链接，而该目录与其所在目录不都属于 {}"
    ),
    "a path with .. in it is not allowed": "路径中不允许 ..",
    "check where it leads; make {} a directory, or make the link again yourself": (
        "请检查它指向何处；把 {} 改为目录，或自己重新创建链接"
    ),
    "make {} a directory; or: chown {} {} {}": "请把 {} 改为目录；或: chown {} {} {}",
    "name the directory itself": "请指定目录本身",
    "according to it {} was in use, and no server ever reaches such a number": (
        "按照它，{} 已被使用，而没有服务器会到达这样的编号"
    ),
    "find out what wrote it, move it out of {}, and run again": "请查明它由谁写入，移出 {}，然后重新运行",
    "a {} lies in the directory that was named for the other files": "{} 位于指定给其他文件的目录中",
    "check whether dataDir and dataLogDir were exchanged": "请检查 dataDir 和 dataLogDir 是否颠倒",
    "epoch {}": "epoch {}",
}
_PLAN: Final = {
    "{} with a time to live": "{}（有存活时间）",
    "{} will be removed by servers without extendedTypesEnabled=true": (
        "{} 会被没有 extendedTypesEnabled=true 的服务器删除"
    ),
    "{} with a time to live expired before: servers remove such nodes after start": (
        "{} 的存活时间已过: 服务器启动后会删除"
    ),
    "{} will be removed by servers before 3.5.1": "{} 会被 3.5.1 之前的服务器删除",
    "members overwrite it with their own configuration when they start": "成员启动时会用自己的配置覆盖它",
    "this is not a version of ZooKeeper": "这不是 ZooKeeper 的版本",
    "it is an ordinary node for ZooKeeper {}": "对 ZooKeeper {} 它是普通节点",
    "start a server of {} or later": "请启动 {} 或更高版本的服务器",
    "start a server of 3.5.1 or later": "请启动 3.5.1 或更高版本的服务器",
    "write it as 3.9.5": "请写成 3.9.5",
    "{} would be removed by ZooKeeper {}": "{} 会被 ZooKeeper {} 删除",
    "it holds {} bytes, and servers with jute.maxbuffer={} do not start on it": (
        "它有 {} 字节，jute.maxbuffer={} 的服务器无法用它启动"
    ),
    "{} would be removed: the servers do not support extended types": "{} 会被删除: 服务器不支持扩展类型",
    "start servers and clients with -Djute.maxbuffer={} or more, and pass that size with --jute-maxbuffer of logkeep": (
        "请用 -Djute.maxbuffer={} 或更大的值启动服务器和客户端"
    ),
    "set extendedTypesEnabled=true in zoo.cfg of every member": (
        "请在每个成员的 zoo.cfg 中设置 extendedTypesEnabled=true"
    ),
    "set extendedTypesEnabled=true in zoo.cfg of every member before the start": (
        "请在启动前于每个成员的 zoo.cfg 中设置 extendedTypesEnabled=true"
    ),
    "zxids belong to a new history from here on: the next incremental backup needs --new-history": (
        "从此 zxid 属于新的历史: 下一次增量备份需要 --new-history"
    ),
    "if a backup was taken since the restore, the next one needs --new-history: zxids belong to the old "
    "history again": ("如果恢复后做过备份，下一次备份需要 --new-history: zxid 重新属于旧的历史"),
    "the tree is the one after transaction {}": "数据树是事务 {} 之后的状态",
    "start the server; of an ensemble all members, when every one of them is rolled back": (
        "请启动服务器；集群则在所有成员回滚之后启动全部成员"
    ),
    "run the restore again: the data from before it is in place": "请重新执行恢复: 原有数据已就位",
    "start the server: it reports zxid {}, above all known zxids": "请启动服务器: 它报告 zxid {}，高于所有已知 zxid",
    "start the members when all are restored: epoch {} is in both epoch files of each, so the next "
    "transaction is {} or above": (
        "全部恢复后启动各成员: 每个成员的两个 epoch 文件都是 epoch {}，因此下一个事务为 {} 或更高"
    ),
    "start the server; of an ensemble all members, when every one of them is restored": (
        "请启动服务器；集群则在所有成员恢复之后启动全部成员"
    ),
    "the data from before is in {}; a rollback of {} restores it": "原有数据在 {}；回滚 {} 可恢复它",
    "restart the clients (a server rejects a client that has seen a later zxid than its own), and everything "
    "that stores zxids of nodes": ("请重启客户端（服务器拒绝见过更高 zxid 的客户端），以及所有保存节点 zxid 的程序"),
    "roll back every member before any of them is started": "请在启动任何成员之前回滚所有成员",
    "give --min-epoch the highest epoch that any member has (currentEpoch in version-2)": (
        "请用 --min-epoch 给出成员中最高的 epoch（version-2 中的 currentEpoch）"
    ),
    "find the server or file of the backup with an impossible zxid, and leave it out": (
        "请找出备份中 zxid 不可能的服务器或文件，并去掉它"
    ),
    "an epoch above {} is needed, and there is none": "需要高于 {} 的 epoch，但不存在",
    "zxids up to {} are in use, and there is none above": "到 {} 的 zxid 都已使用，没有更高的",
    "the restored server had reached {}, and the old data ends with {}: the zxids in between will be used again": (
        "恢复的服务器曾到达 {}，而原有数据结束于 {}: 其间的 zxid 会被再次使用"
    ),
    "epoch {} is back, the restored member had {}: a member of the ensemble that is not rolled back has the "
    "higher epoch, and its tree replaces all others": (
        "回到 epoch {}，恢复的成员曾是 {}: 集群中没有回滚的成员 epoch 更高，其数据树会取代所有其他成员"
    ),
    "find the file of the backup with an impossible zxid in its name, and leave it out": (
        "请找出备份中名称含不可能 zxid 的文件，并去掉它"
    ),
    "the last zxid of the restored server cannot be read: {}": "无法读取恢复的服务器的最后 zxid: {}",
    "give the dataLogDir of zoo.cfg; if it has none, give dataDir twice": (
        "请给出 zoo.cfg 的 dataLogDir；如果没有，dataDir 给出两次"
    ),
    "restore an exact snapshot instead of the original files": "请恢复精确的 snapshot，而不是原始文件",
    "it is a member of an ensemble: every member must be restored, with epoch {}": (
        "它是集群的成员: 必须以 epoch {} 恢复每个成员"
    ),
    "stop all members, restore all of them with one plan, then start them": (
        "请停止所有成员，用同一计划恢复全部成员，然后启动"
    ),
    "it holds snapshots and no logs: are the logs in another directory?": (
        "有 snapshot 而没有日志: 日志是否在其他目录？"
    ),
    "ZooKeeper {} cannot read a packed snapshot": "ZooKeeper {} 无法读取压缩的 snapshot",
    "from here on the tree differs from the server's tree; this was accepted: {}": (
        "从此处起数据树与服务器的不同；已接受: {}"
    ),
    "the backup ends at {}: changes between then and {} are missing": "备份结束于 {}: 缺少此后到 {} 的修改",
    "zxids above {} were in use, and will be used again": "高于 {} 的 zxid 曾被使用，会再次使用",
    "a member that is not restored and has a later snapshot keeps that tree, whatever the leader has": (
        "没有恢复且有更晚 snapshot 的成员会保留其数据树，不论 leader 如何"
    ),
    "it lacks the ACLs of {}: ZooKeeper 3.9.5 may refuse to start from it": (
        "缺少 {} 的 ACL: ZooKeeper 3.9.5 可能拒绝用它启动"
    ),
    "the owner of the directory is not in group {}: restored files get no rights of a group": (
        "目录的所有者不属于组 {}：恢复的文件没有任何组权限"
    ),
    "add the owner to the group and restore again, or set the group afterwards: chgrp, chmod g+r": (
        "请将所有者加入该组后重新恢复，或事后设置组：chgrp、chmod g+r"
    ),
    "files beside version-2 hold later numbers than its own files, and are counted: {}": (
        "version-2 旁边的文件编号比其自身文件更高，已计入: {}"
    ),
    "correct if servers ran on these files; otherwise move them away and plan again": (
        "如果服务器用过这些文件则正确；否则请移走并重新计划"
    ),
    "a server would read these files, but no server wrote them: {}": "服务器会读取这些文件，但没有服务器写过: {}",
    "a log that is replaced is damaged: its last zxid is an upper estimate": (
        "被替换的日志已损坏: 其最后 zxid 是上限估计"
    ),
    "the server of this backup had its logs in another directory ({})": "此备份的服务器日志在其他目录（{}）",
    "ZooKeeper {} may not support all transactions of these logs": "ZooKeeper {} 可能不支持这些日志的所有事务",
    "only {} of the ensemble's members could be checked: another may have a later epoch": (
        "只检查了集群的 {} 个成员: 其他成员可能有更高的 epoch"
    ),
    "no log directory was named for {}: logs in a dataLogDir would be replayed": (
        "{} 没有指定日志目录: dataLogDir 中的日志会被重放"
    ),
    "survey every host with `logkeep zookeeper restore survey` and make one plan of all; or give the highest "
    "epoch that any of them has (currentEpoch in version-2) with --min-epoch; here it is {}": (
        "请用 `logkeep zookeeper restore survey` 检查每台主机并制定统一的计划；或用 --min-epoch 给出其中最高的"
        " epoch（version-2 中的 currentEpoch）；这里是 {}"
    ),
    "no directory to restore to is named": "没有指定恢复的目录",
    "original files keep their sessions": "原始文件保留其会话",
    "two servers cannot have the same directory": "两个服务器不能使用同一目录",
    "the replayed tree differs from the tree that the server had": "重放的数据树与服务器原有的不同",
    "nothing proves that an epoch ended with {}": "无法证明有 epoch 结束于 {}",
    "name dataDir of each server": "请指定每个服务器的 dataDir",
    "restore an exact snapshot to drop them": "请恢复精确的 snapshot 以去掉它们",
    "zxid {}": "zxid {}",
    "verify the backup: a transaction is missing or was changed; restore to an earlier one, or give the "
    "reason to restore it anyway with --accept-mismatch": (
        "请验证备份: 有事务缺失或被修改；请恢复到更早的事务，或用 --accept-mismatch 说明仍要恢复的理由"
    ),
    "back up more members, restore to a zxid before it, or accept the unproven end": (
        "请备份更多成员，恢复到它之前的 zxid，或接受未证明的末尾"
    ),
    "other bytes": "其他字节",
    "{} instead of {}": "{}，而不是 {}",
    "another digest": "其他摘要",
    "disproven: the server's digest at {} differs, which was accepted": "已否定: 服务器在 {} 的摘要不同，已接受",
    "it holds data already": "那里已有数据",
    "the staged files were removed": "准备好的文件被删除",
    "find out what removes them, and run again": "请查明是什么删除了它们，然后重新运行",
    "the written file does not read back: {}": "写入的文件读回时不符: {}",
    "{}, then continue restore {}, or roll it back": "{}，然后继续恢复 {}，或回滚",
    "allow its replacement with --force; the old data is kept beside the restored data": (
        "请用 --force 允许替换；原有数据保留在恢复的数据旁边"
    ),
    "files changed there while the restore was prepared: something is writing to them": (
        "准备恢复时那里的文件发生变化: 有程序正在写入"
    ),
    "check the disk; the old data is untouched": "请检查磁盘；原有数据未改动",
    "stop the server, also one on another host that has this directory mounted, and run again": (
        "请停止服务器，包括在其他主机上挂载此目录的服务器，然后重新运行"
    ),
    "stop the server, of an ensemble every member, and run again": "请停止服务器（集群则停止所有成员），然后重新运行",
    "; if that is not the server of these directories, give the address of the right one with --zk-host "
    "HOST:PORT: no server must answer there": (
        "；如果那不是这些目录的服务器，请用 --zk-host HOST:PORT 给出正确的地址: 那里不应有服务器应答"
    ),
    "the open files of {} of other users cannot be seen": "无法看到其他用户的 {} 打开的文件",
    "a server answers at {}": "{} 有服务器应答",
    "process {} is a server that is configured for these directories": "进程 {} 是使用这些目录的服务器",
    "no host was named for {}, so no server was asked": "{} 没有指定主机，因此没有询问服务器",
    "this system does not show which files are open": "此系统不显示打开的文件",
    "whether a server runs at {} is not known: {}": "{} 是否有服务器运行未知: {}",
    "process {} has files open there": "进程 {} 打开了那里的文件",
    "this is not the name of a snapshot": "这不是 snapshot 的文件名",
    "this is not the path of a node": "这不是节点的路径",
    "write it as /a/b, like zkCli.sh": "请写成 /a/b，与 zkCli.sh 相同",
}
RESTORE: Final = {**_TARGET, **_PLAN}
