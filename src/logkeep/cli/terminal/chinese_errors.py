"""Chinese for why zkbackup fails or refuses: sentences of errors and remedies, with `{}` for values."""

from typing import Final

_PROGRAM: Final = {
    "there is no completion for {}": "{} 没有补全脚本",
    "choose one of {}": "请选择 {} 之一",
    "there is no option {}": "没有选项 {}",
    "options come after the command: {} COMMAND {}": "选项写在命令之后: {} COMMAND {}",
    "there is no command {}": "没有命令 {}",
    "the working directory does not exist any more": "工作目录已不存在",
    "change to another directory and run again": "请切换到其他目录后重新运行",
    "check this path": "请检查此路径",
    "unexpected {}: {}": "意外错误 {}: {}",
    "unexpected {}": "意外错误 {}",
    "details in {}; please report it": "详细信息见 {}；请报告此问题",
    "a run with -vv": "加上 -vv 的运行",
    "see `{} --help`": "参见 `{} --help`",
    "{} is missing": "缺少 {}",
    "give it without an option: `{} {}`": "请直接给出，不用选项: `{} {}`",
    "{} is not one of {}": "{} 不是可选的值，可选: {}",
    "free space or raise the quota, then run again": "请释放空间或提高配额，然后重新运行",
    "check the owner and the permissions of this path": "请检查此路径的所有者和权限",
    "clean-up was not complete: {}: {}": "清理没有完成: {}: {}",
    "the answer could not be written: {}": "无法写出结果: {}",
    "free space and run again": "请释放空间后重新运行",
    "this needs a confirmation: {}": "需要确认: {}",
    "not confirmed": "未确认",
    "nothing was changed; run it on a terminal, or pass {}": "没有做任何修改；请在终端运行，或使用 {}",
    "nothing was changed": "没有做任何修改",
    "`zkbackup list --backup-base-dir {}` shows the ids": "使用 `zkbackup list --backup-base-dir {}` 查看备份 ID",
    "not a document of a backup": "不是备份的元数据文件",
    "pass {}": "请使用 {}",
    "pass {}, or put {} in zkbackup.yaml": "请使用 {}，或在 zkbackup.yaml 中设置 {}",
    ", or put {} in zkbackup.yaml": "，或在 zkbackup.yaml 中设置 {}",
    "the log file's directory cannot be created: {}": "无法创建日志文件的目录: {}",
    "choose another logging.file": "请使用其他 logging.file",
    "it cannot be removed": "无法删除",
    "the receipt cannot be written: {}": "无法写入恢复报告: {}",
    "the receipt cannot be written ({}): see {}": "无法写入恢复报告（{}）: 参见 {}",
    "free space there, and run again": "请在那里释放空间，然后重新运行",
    "the default of --zk-host": "--zk-host 的默认值",
    "set by {}": "由 {} 设置",
    "{} cannot be restored: a file that contains it is damaged": "{} 无法恢复: 包含它的文件已损坏",
    "there is no receipt: this restore was started by another program or an earlier version of zkbackup": (
        "没有恢复报告: 此恢复由其他程序或较早版本的 zkbackup 开始"
    ),
    "`zkbackup verify --fix` may repair it; --to-zxid {} restores what is left": (
        "`zkbackup verify --fix` 可能修复它；--to-zxid {} 恢复剩余部分"
    ),
    "see {} for the options": "选项说明见 {}",
    "see {}": "参见 {}",
    "the verification was not finished within {} s": "验证没有在 {} 秒内完成",
    "raise advanced.validation_timeout, or remove it for no limit": (
        "请提高 advanced.validation_timeout，或删除它以取消限制"
    ),
    "there is no directory {}": "目录 {} 不存在",
    "it should reach to {}, and only {} can be proven: something is damaged": "应到达 {}，而只能证明 {}: 有内容损坏",
    "run verify to see what; --to-zxid {} restores what is left": "请运行 verify 查看；--to-zxid {} 恢复剩余部分",
    "unknown reason": "原因未知",
    "the message is the store's own; its log may say more": "此消息来自存储本身；其日志可能有更多信息",
    "another program wrote it; see that no other one writes there, then run again": (
        "另一个程序写入了它；请确保没有其他程序写入，然后重新运行"
    ),
    "another program changed it; see that no other one writes there, then run again": (
        "另一个程序修改了它；请确保没有其他程序写入，然后重新运行"
    ),
    "see `ulimit -a`, free memory and the kernel's log, then run again": (
        "请检查 `ulimit -a`、空闲内存和内核日志，然后重新运行"
    ),
    "check the network and the server, then run again": "请检查网络和服务器，然后重新运行",
    "the connection failed: {}": "连接失败: {}",
    "a library cannot be loaded: {}": "无法加载库: {}",
    "check free memory and `ulimit -v`, and that the installation is whole": (
        "请检查空闲内存和 `ulimit -v`，以及安装是否完整"
    ),
    "check the disk, the limits of this process (`ulimit -a`) and the kernel's log, then run again": (
        "请检查磁盘、此进程的限制（`ulimit -a`）和内核日志，然后重新运行"
    ),
    "the memory is used up": "内存已用完",
    "lower --parallel, or run it where there is more memory": "请降低 --parallel，或在内存更多的机器上运行",
    "the operating system starts no more threads": "操作系统无法再启动线程",
    "raise the limit (`ulimit -u`)": "请提高限制（`ulimit -u`）",
    "input/output error": "输入/输出错误",
    "too many open files": "打开的文件过多",
    "not enough memory to read a part": "内存不足，无法读取部分",
    "no space left on the device": "磁盘空间不足",
    "no space left on device": "磁盘空间不足",
    "the disk quota is used up": "磁盘配额已用完",
    "the file is larger than this file system allows": "文件超过文件系统允许的大小",
    "permission denied": "权限不足",
    "no such file or directory": "文件或目录不存在",
    "not a directory": "不是目录",
    "connection refused": "连接被拒绝",
    "operation not permitted": "操作不允许",
    "the file system is read-only": "文件系统是只读的",
    "no such object": "文件不存在",
    "the name exists already": "名称已存在",
    "it is a link": "它是链接",
    "the name is too long for this file system": "名称超过文件系统允许的长度",
    "the network file system lost the file handle": "网络文件系统丢失了文件句柄",
    "the network file system does not answer": "网络文件系统没有应答",
    "it is a file where a directory is needed": "需要目录，但它是文件",
    "it is a link, not a directory": "它是链接，不是目录",
    "the operating system refused it": "操作系统拒绝了该操作",
    "the operating system refused": "操作系统拒绝了该操作",
    "no such directory": "目录不存在",
    "it is not a directory": "它不是目录",
    "it is not a regular file": "它不是普通文件",
    "names below {}/ are reserved for the store": "{}/ 下的名称由存储保留",
    "it is a link or not a regular file": "它是链接，或不是普通文件",
    "the stream is closed": "流已关闭",
    "the object changed since it was read": "对象在读取后已改变",
    "it has {} bytes; at most {} are allowed": "有 {} 字节；最多允许 {}",
    "it ends before byte {}": "在字节 {} 之前结束",
    "ends before byte {}": "在字节 {} 之前结束",
    "the directory cannot be created: {}": "无法创建目录: {}",
    "not a safe object name": "不是安全的对象名",
    "a prefix must end with '/'": "前缀必须以 '/' 结尾",
    "another file was put in its place while it was read": "读取时它被另一个文件替换",
    "mode {}": "权限 {}",
    "{} belongs to the user {}": "{} 属于用户 {}",
    "every user can write to {} ({})": "所有用户都可以写入 {}（{}）",
    "the group {} can write to {} ({})": "组 {} 可以写入 {}（{}）",
    "the file": "该文件",
    "its directory": "其目录",
    "others can change what it holds: {}": "其他用户可以修改其内容: {}",
    "its path cannot be checked ({})": "无法检查其路径（{}）",
    "the symbolic link {} belongs to the user {}": "符号链接 {} 属于用户 {}",
    "{} is a symbolic link": "{} 是符号链接",
    "remove this directory (a change of its mode keeps what others put there), or set LOGKEEP_CACHE_DIR": (
        "请删除此目录（修改权限会保留他人放入的内容），或设置 LOGKEEP_CACHE_DIR"
    ),
}
_CONFIG: Final = {
    "the file is nested too deeply": "文件嵌套过深",
    "the file is not valid YAML: {}": "文件不是有效的 YAML: {}",
    "must be a mapping of sections": "必须由若干节组成",
    "has a key that is not plain text": "有不是纯文本的键",
    "has the key {} twice": "键 {} 出现两次",
    "uses an anchor; write the value out": "使用了锚点；请写出具体的值",
    "see docs/reference/options.md for the keys of this file": "此文件的键见 docs/reference/options.md",
    "the configuration file in the working directory is not used: {}": "不使用工作目录中的配置文件: {}",
    "is larger than {} bytes": "大于 {} 字节",
    "the configuration file cannot be read: {}": "无法读取配置文件: {}",
    "read it, and pass --config ./{} if you trust it": "请查看它；如果信任它，使用 --config ./{}",
    "is not UTF-8 text (byte {})": "不是 UTF-8 文本（字节 {}）",
    "there is no such configuration file": "配置文件不存在",
    "check its permissions": "请检查其权限",
    "save it as UTF-8": "请保存为 UTF-8",
    "check the path": "请检查路径",
    "see docs/reference/options.md for the options": "选项说明见 docs/reference/options.md",
    "pass it as a flag, put it into the user's file, or name this file with --config": (
        "请作为参数给出，写入用户的配置文件，或用 --config 指定此文件"
    ),
    "see docs/reference/options.md for the variables": "环境变量见 docs/reference/options.md",
    "{} (and {} more problem{}{})": "{}（另有 {} 个问题）",
    " (and {} more problem{}{})": "（另有 {} 个问题）",
    "did you mean {}?": "是否是 {}？",
    "unknown key {}": "未知的键 {}",
    "unknown variable {}: {}": "未知的环境变量 {}: {}",
    "{} is a section, not a value": "{} 是节，不是值",
    "{} is given twice, by {}": "{} 由 {} 重复给出",
    "keep one of them": "请只保留一个",
    "give {}": "请给出{}",
    "put its keys below it": "请把键写在它的下面",
    "{} must be {}, not {}": "{} 必须是{}，而不是 {}",
    "{} must be 1 to 64 letters, digits, dots, dashes or underscores, not starting with a dot, not {}": (
        "{} 必须是 1 到 64 个字母、数字、点、短横线或下划线，不能以点开头，而不是 {}"
    ),
    "{} must not be empty": "{} 不能为空",
    "a duration such as 10s, 5m, 24h or 7d": "时长，例如 10s、5m、24h 或 7d",
    "a size such as 16MiB, 16M or 16777216": "大小，例如 16MiB、16M 或 16777216",
    "true or false": "true 或 false",
    "a transaction id such as 0x500000001 or 21474836481": "事务 ID，例如 0x500000001 或 21474836481",
    "a time such as 2026-11-14T02:00:00Z, '2026-11-14 02:00 Europe/Zurich' or -10m": (
        "时间，例如 2026-11-14T02:00:00Z、'2026-11-14 02:00 Europe/Zurich' 或 -10m"
    ),
    "a whole number of at least {}{}": "不小于 {} 的整数{}",
    " and at most {}": "，且不大于 {}",
    "one of {}": "{} 之一",
    "a list of texts": "文本列表",
    "1 to 64 letters, digits, dots, dashes or underscores, not starting with a dot": (
        "1 到 64 个字母、数字、点、短横线或下划线，不能以点开头"
    ),
    "--{} {} is {} ({})": "--{} {} 即 {}（{}）",
    "before now": "相对于现在",
    "UTC, as no time zone is given": "没有给出时区，按 UTC",
    "has an offset and the zone {}: give one of them": "同时有偏移和时区 {}: 请只给出一个",
    "is shown {} by clocks in {}: give an offset such as +01:00": "在 {1} 的时钟上出现{0}: 请给出偏移，例如 +01:00",
    "never": "零次",
    "twice": "两次",
    "names the time zone {}, which this machine does not know: give an offset": "时区 {} 在本机未知: 请给出偏移",
}
_BACKUP: Final = {
    "its logs hold another transaction under the zxid of an archived one": "其日志在已备份事务的 zxid 下有另一个事务",
    "{}, and what may prove it is damaged in the archive: {}": "{}，而可能证明它的内容在备份中已损坏: {}",
    "its logs begin after the last archived transaction": "其日志从最后备份的事务之后开始",
    "its logs do not hold the last archived transaction": "其日志不包含最后备份的事务",
    "another transaction has the zxid of the last archived one": "另一个事务使用了最后备份事务的 zxid",
    "none of the archived transactions is in its logs": "其日志不包含任何已备份的事务",
    "name every member, each once": "请指定每个成员，各一次",
    "the backup would be in a directory of the server itself": "备份会写入服务器自己的目录",
    "choose one outside of {}, on another disk if you can": "请选择 {} 之外的目录，最好在另一块磁盘上",
    "since ZooKeeper 3.0 data is in `version-2`; these files are older, and no current server reads them": (
        "ZooKeeper 3.0 起数据在 `version-2` 中；这些文件更早，当前的服务器都不读取"
    ),
    "this is not a directory": "这不是目录",
    "it cannot be read: permission denied": "无法读取: 权限不足",
    "there is no snapshot and no log": "没有 snapshot，也没有日志",
    "these files are from before ZooKeeper 3": "这些文件早于 ZooKeeper 3",
    "run as the user of the server, or as a member of a group that may read its directories": (
        "请用服务器的用户，或可以读取其目录的组成员运行"
    ),
    "the file cannot be read: {}": "无法读取文件: {}",
    "it cannot be read: {}": "无法读取: {}",
    "check the disk of this server": "请检查此服务器的磁盘",
    "restore the document from a copy; or unpack what is in snapshots and txnlogs into one directory "
    "version-2, and run `zkbackup backup` with it as --zk-data-dir: that makes a new backup of them": (
        "请从副本找回元数据文件；或把 snapshots 和 txnlogs 的内容解压到一个 version-2 目录，并以它为"
        " --zk-data-dir 运行 `zkbackup backup`: 这会生成新的备份"
    ),
    "it is larger than any document of a backup": "它大于本程序写入的任何文件",
    "it has format {}, this release reads {}": "其格式为 {}，此版本读取 {}",
    "its last zxid differs between hexadecimal and decimal": "最后事务的两个编号不一致",
    "two entries have the same file": "两个条目指向同一个文件",
    "it does not follow its schema: {}": "它不符合其模式: {}",
    "{} is not the name of a stored file": "{} 不是备份文件的名称",
    "{} cannot be a backup id": "{} 不能作为备份 ID",
    "{} cannot be a backup id: ZooKeeper's own files have such names": (
        "{} 不能作为备份 ID: ZooKeeper 自己的文件使用此类名称"
    ),
    "use 1 to 64 letters, digits, '.', '_' or '-', no dot in front": (
        "请使用 1 到 64 个字母、数字、'.'、'_' 或 '-'，不能以点开头"
    ),
    "use another": "请使用其他名称",
    "its list of repairs does not follow its schema: {}": "修复列表不符合格式: {}",
    "older than {} days": "超过 {} 天",
    "more than {} backups": "超过 {} 个备份",
    "{}: not counted": "{}: 不计入",
    "it was changed: its seal does not match": "已被修改: 校验印记不符",
    "there is no backup here": "这里没有备份",
    "{} ends before it begins": "{} 的结束早于开始",
    "name the directory of one backup": "请指定一个备份的目录",
    "name a directory for backups": "请指定备份目录",
    "no directory can be created there": "无法在那里创建目录",
    "a bundle holds one member; back several up into a repository": "此处只能备份一个成员；多个成员请备份到仓库",
    "another run has used this id meanwhile": "另一个运行已使用此 ID",
    "a backup with this id exists already": "此 ID 的备份已存在",
    "choose another --backup-id, or leave it out: the time is then the id": (
        "请使用其他 --backup-id，或省略它: 以时间为 ID"
    ),
    "another run is writing this backup": "另一个运行正在写入此备份",
    "wait for it, or choose another id": "请等待它结束，或使用其他 ID",
    "records were found and not stored": "发现了记录但没有保存",
    "the directories were not listed yet": "尚未列出目录",
    "check the network, or name a mirror with spark.jars.repositories in SPARK_CONF_DIR/spark-defaults.conf": (
        "请检查网络，或在 SPARK_CONF_DIR/spark-defaults.conf 中用 spark.jars.repositories 指定镜像"
    ),
    "check the host and port, the network, and that the server runs": "请检查主机、端口和网络，以及服务器是否运行",
    "not the address of a server": "不是服务器的地址",
    "timed out": "超时",
    "write host:port, as 127.0.0.1:2181": "请写成 host:port，例如 127.0.0.1:2181",
    "no answer to {}: {}": "{} 没有应答: {}",
    "the answer to {} is longer than {} bytes": "{} 的应答超过 {} 字节",
    "no {} ports of {} to {} are free on this host": "本机 {1} 到 {2} 中没有 {0} 个空闲端口",
    "exit code {}: {}": "退出码 {}: {}",
    "no message": "没有信息",
    "the server ended with exit code {}": "服务器以退出码 {} 结束",
    "the server exited while starting": "服务器在启动时退出",
    "the server did not answer within {} s": "服务器没有在 {} 秒内应答",
    "free memory; _JAVA_OPTIONS=-Xmx4g in the environment lets the server use more": (
        "请释放内存；环境变量 _JAVA_OPTIONS=-Xmx4g 让服务器使用更多内存"
    ),
    "its jars are incomplete: remove `jars` in the cache directory and run again": (
        "jar 文件不完整: 请删除缓存目录中的 `jars` 后重新运行"
    ),
    "check that the Java runtime works: `java -version`; check _JAVA_OPTIONS and JAVA_HOME": (
        "请检查 Java 能否运行: `java -version`；并检查 _JAVA_OPTIONS 和 JAVA_HOME"
    ),
    "check that the directory for temporary files can be written, or set TMPDIR to another one": (
        "请检查临时目录能否写入，或把 TMPDIR 设为其他目录"
    ),
    "free space, or set TMPDIR to a larger directory": "请释放空间，或把 TMPDIR 设为更大的目录",
    "another program uses its port: run again": "端口被其他程序占用: 请重新运行",
    "raise the limit of open files (ulimit -n)": "请提高打开文件数的限制（ulimit -n）",
    "install a newer Java runtime and set JAVA_HOME": "请安装较新的 Java 并设置 JAVA_HOME",
    "another process ended the server while it started": "服务器启动时被其他进程结束",
    "check whether the kernel ran out of memory, then run again": "请检查内核是否内存不足，然后重新运行",
    "the server exited with {} while starting and did not report its files as the cause": (
        "服务器启动时以 {} 退出，且没有报告是其文件的原因"
    ),
    "the server exited while starting, not because of its files: {}": "服务器启动时退出，不是因为其文件: {}",
}
_REMEDIES: Final = {
    "name dataDir and dataLogDir of zoo.cfg, with or without version-2": (
        "请指定 zoo.cfg 的 dataDir 和 dataLogDir，可带或不带 version-2"
    ),
    "check credentials and permissions; an object lock or a read-only mount refuses writes too": (
        "请检查凭据和权限；对象锁或只读挂载也会拒绝写入"
    ),
    "check the URL; create the bucket or directory first": "请检查 URL；先创建存储桶或目录",
    "free space or raise the quota, then run again; earlier backups are untouched": (
        "请释放空间或提高配额，然后重新运行；已有的备份不受影响"
    ),
    "the message is the server's own; its log may say more": "这是服务器自己的信息；其日志可能有更多内容",
    "upgrade logkeep; nothing was read or changed": "请升级 logkeep；没有读取或修改任何内容",
    "back up more often than the source deletes": "备份频率应高于源删除数据的频率",
    "run as the user that owns the directory": "请用目录的所有者运行",
    "check that this is the right ensemble; if it is, and its data was restored or purged, pass --new-history": (
        "请检查集群是否正确；如果正确，且其数据被恢复或清除过，请使用 --new-history"
    ),
    "check that this host is a server of the cluster, and the network to it; then run again": (
        "请检查此主机是否是集群的服务器，以及到它的网络；然后重新运行"
    ),
    "run again; earlier backups are untouched": "请重新运行；已有的备份不受影响",
    "the findings name each damaged object": "上面的问题列出了每个损坏的对象",
    "the message names its log file": "信息中有其日志文件",
    "remove `jars` in the cache directory and run again": "请删除缓存目录中的 `jars` 后重新运行",
}
ERRORS: Final = {**_PROGRAM, **_CONFIG, **_BACKUP, **_REMEDIES}
