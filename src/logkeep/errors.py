"""Every error that Logkeep raises on purpose, in one tree.

    LogkeepError                        1
    ├── UsageError                     40   an invalid flag, argument or id
    │   ├── ConfigError                40   an invalid configuration file or variable
    │   ├── UnknownBackup              40   no such id, or an ambiguous prefix
    │   ├── UnknownSource              40   no such source, or several and none named
    │   ├── IllegalTransition          40   a backup's state does not allow the step
    │   ├── StoreUnsafe                40   commits would not be safe on this store
    │   ├── LogDirUnusable             40   not a log directory, in use, or unreadable
    │   ├── DataDirUnusable            40   not a ZooKeeper directory, too old, or unreadable
    │   └── EngineUnavailable          40   Java or Spark is not usable here
    ├── Declined                        3   the user said no
    ├── StoreError                     51   a store refused a request, for no reason below
    │   ├── ObjectMissing              10   a named object is not there
    │   ├── AlreadyExists              50   put_new met an existing name
    │   ├── VersionMismatch            50   replace met another version
    │   ├── UnsafeName                 10   a name that could leave its root
    │   ├── StoreLocationMissing       41   no such bucket or directory
    │   ├── StoreUnreachable           51   network, DNS, 5xx        (retry helps)
    │   ├── StoreBusy                  51   429, SlowDown            (retry helps)
    │   ├── StoreDenied                52   403, EACCES, read-only
    │   └── StoreFull                  20   no space, quota
    ├── ClusterError                   51   a cluster or ensemble refused a request, for no reason below
    │   ├── ClusterUnreachable         51   no server answers        (retry helps)
    │   ├── ClusterNotReady            51   no leader, no coordinator (retry helps)
    │   ├── AuthenticationFailed       52   a broker refused our credentials
    │   ├── NotAuthorised              52   an ACL forbids it
    │   ├── TlsFailed                  40   certificates, host names, protocol versions
    │   ├── ProtocolMismatch           40   another security.protocol, or no Kafka broker at all
    │   ├── InvalidAnswer              51   a server's answer does not fit the request
    │   ├── ClusterTooOld              40   no common version of an API
    │   └── TopicMissing               40   no such topic or partition
    ├── RepositoryMissing              41   not initialised
    ├── FormatTooNew                   43   a required feature we do not know
    ├── Damaged                        10   bytes are not what was written
    ├── Locked                         50   another run holds the lease
    │   ├── LeaseLost                  50   our lease expired or was taken
    │   ├── PartitionFenced            50   another process leads this partition now
    │   └── CommitConflict             50   another run committed this generation
    ├── BackupFailed                   20
    │   ├── TaskFailed                 20   a unit of work failed for good
    │   ├── OldMessageFormat           20   a topic holds messages from before Kafka 0.11
    │   └── SourceDamaged              20   the source sent invalid bytes (retry helps)
    ├── DataGap                        21
    ├── RestoreFailed                  30
    ├── TargetUnsafe                   31
    ├── OtherOwner                     52   another user's file, link or directory in a restore's way
    ├── HistoryUnproven                31   a source may not be the archived one
    ├── VerificationFailed             10
    ├── AuthenticityFailed             11
    ├── WrongKey                       42
    ├── HostFailed                     40   no memory, files or processes on this host, a failing device
    ├── ServerFailed                   40   an embedded server did not start
    │   ├── ServerRefused              40   it refused the files in its directories
    │   ├── JarsUnavailable            51   its jars could not be downloaded
    │   └── JarsUntrusted              40   its jars are not the pinned ones
    └── Interrupted               130/143

Each class has an exit code, whether a retry can help, and a remedy; an instance says what happened and to which
subject. Of the kinds in `OF_THE_VERB`, a verb that backs up ends with 20, and one that restores with 30. A raised
LogkeepError without a kind means a fault of this program. Messages are lower case without a full stop. The reference
page is generated from this tree.
"""

from typing import ClassVar


class LogkeepError(Exception):
    """Something went wrong that no other class describes."""

    exit_code: int = 1
    retry_helps: ClassVar[bool] = False
    remedy: str = "run again with -v; if it happens again, report the message and the log file"

    def __init__(self, what: str, *, subject: str = "", remedy: str | None = None) -> None:
        """`what` happened, the `subject` (an object, a source, a URL), and what to do next."""
        super().__init__(what)
        self.what = what
        self.subject = subject
        if remedy is not None:
            self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}" if self.subject else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark workers); keyword arguments must survive.
        return (_rebuild, (type(self), self.what, self.subject, self.remedy))

    @classmethod
    def slug(cls) -> str:
        """The stable name of this error in JSON and in the reference: `StoreBusy` → `store-busy`."""
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("-")


def _rebuild(kind: type[LogkeepError], what: str, subject: str, remedy: str) -> LogkeepError:
    return kind(what, subject=subject, remedy=remedy)


class UsageError(LogkeepError):
    """A flag, argument or id is invalid."""

    exit_code = 40
    remedy = "see `logkeep --help`"


class ConfigError(UsageError):
    """A configuration file or environment variable is invalid."""

    remedy = "run `logkeep config validate`"


class UnknownBackup(UsageError):
    """No backup has this id, or several have this prefix."""

    remedy = "`logkeep list` lists the ids"


class UnknownSource(UsageError):
    """No source has this name, or there are several and none was named."""

    remedy = "name one with --source; `logkeep list` lists them"


class IllegalTransition(UsageError):
    """The state of a backup does not allow this step: ids must grow, failed is final."""

    remedy = "take a new backup with a larger id"


class StoreUnsafe(UsageError):
    """Commits would not be safe on this store."""

    remedy = "use a store that honours conditional writes; `logkeep store probe URL` shows what it can do"


class LogDirUnusable(UsageError):
    """A directory is not a log directory of a broker, is in use by a broker, or cannot be read."""

    remedy = "name the directories in `log.dirs` of stopped brokers"


class DataDirUnusable(UsageError):
    """A directory is not of ZooKeeper, cannot be read, or holds files from before ZooKeeper 3."""

    remedy = "name dataDir and dataLogDir of zoo.cfg, with or without version-2"


class EngineUnavailable(UsageError):
    """Java or Spark cannot be used on this host."""

    remedy = "install a Java 17 (or 21) runtime and set JAVA_HOME"


class Declined(LogkeepError):
    """The user said no, or could not be asked."""

    exit_code = 3
    remedy = "nothing was changed; pass --yes to skip the question"


class StoreError(LogkeepError):
    """The store did not carry out a request."""

    exit_code = 51
    remedy = "the message is the store's own; its log may say more"


class ObjectMissing(StoreError):
    """An object is missing."""

    exit_code = 10
    remedy = "run `logkeep verify`; if the store keeps versions, restore the object from them"


class AlreadyExists(StoreError):
    """A name that had to be new exists already."""

    exit_code = 50
    remedy = "another program wrote it; see that no other one writes there, then run again"


class VersionMismatch(StoreError):
    """An object changed since it was read."""

    exit_code = 50
    remedy = "another program changed it; see that no other one writes there, then run again"


class UnsafeName(StoreError):
    """An object name could lead out of the root directory, or is a link."""

    exit_code = 10
    remedy = "another program changed the repository; run `logkeep verify`"


class StoreLocationMissing(StoreError):
    """The bucket, container or directory does not exist."""

    exit_code = 41
    remedy = "check the URL; create the bucket or directory first"


class StoreUnreachable(StoreError):
    """The store does not answer."""

    exit_code = 51
    retry_helps = True
    remedy = "check the network, the endpoint and the URL, then run again"
    lasting: bool = False
    """The cause rarely passes by itself: refused, unknown host, TLS. A store that never answered is not waited for."""


class StoreBusy(StoreError):
    """The store asks clients to slow down."""

    exit_code = 51
    retry_helps = True
    remedy = "lower --parallel or --limit-upload, or try later"


class StoreDenied(StoreError):
    """The store refuses these credentials, or is read-only."""

    exit_code = 52
    remedy = "check credentials and permissions; an object lock or a read-only mount refuses writes too"


class StoreFull(StoreError):
    """No space is left in the store."""

    exit_code = 20
    remedy = "free space or raise the quota, then run again; earlier backups are untouched"


class ClusterError(LogkeepError):
    """A Kafka cluster or a ZooKeeper ensemble refused a request."""

    exit_code = 51
    remedy = "the message is the server's own; its log may say more"


class ClusterUnreachable(ClusterError):
    """No broker or server answers."""

    exit_code = 51
    retry_helps = True
    remedy = "check --bootstrap-servers, the network and the listener's security.protocol, then run again"


class ClusterNotReady(ClusterError):
    """A partition has no leader or a group no coordinator at this moment."""

    exit_code = 51
    retry_helps = True
    remedy = "check which brokers are down, then run again"


class AuthenticationFailed(ClusterError):
    """A broker refused our credentials."""

    exit_code = 52
    remedy = "check sasl.mechanism, user and password in the client properties"


class NotAuthorised(ClusterError):
    """An ACL of the cluster forbids this."""

    exit_code = 52
    remedy = "grant the missing permission to this user with kafka-acls"


class TlsFailed(ClusterError):
    """No trusted TLS connection is possible: certificate authority, host name, validity, protocol version."""

    exit_code = 40
    remedy = "check ssl.truststore.*, ssl.keystore.* and the names in the broker's certificate"


class ProtocolMismatch(ClusterError):
    """The server at this address uses another security.protocol than this client, or is not a Kafka broker."""

    exit_code = 40
    remedy = "check host and port, and security.protocol in the file of --command-config"


class InvalidAnswer(ClusterError):
    """A broker or server sent an answer that cannot be read or does not fit the request."""

    exit_code = 51
    remedy = "check that this host is a server of the cluster, and the network to it; then run again"


class ClusterTooOld(ClusterError):
    """The broker and this release have no version of an API in common."""

    exit_code = 40
    remedy = "Kafka 3.9 and newer are supported"


class TopicMissing(ClusterError):
    """The topic or partition does not exist, or this user may not see it."""

    exit_code = 40
    remedy = "check the name; a topic also appears missing to a user without the Describe permission"


class RepositoryMissing(LogkeepError):
    """There is no repository at this URL."""

    exit_code = 41
    remedy = "create it with `logkeep init -r URL`"


class FormatTooNew(LogkeepError):
    """The repository needs a feature that this release does not know."""

    exit_code = 43
    remedy = "upgrade logkeep; nothing was read or changed"


class Damaged(LogkeepError):
    """Stored bytes are not what was written."""

    exit_code = 10
    remedy = "`logkeep verify` shows what is damaged, `logkeep repair --dry-run` what can be repaired"


class Locked(LogkeepError):
    """Another run holds the lease of this source."""

    exit_code = 50
    remedy = "wait for it; `logkeep unlock --dry-run` shows which run it is"
    operation: str = ""
    """What the holder of a lease is doing; empty if that is not known."""


class LeaseLost(Locked):
    """Our lease expired or another run took it; what this run wrote is not committed."""

    remedy = "run again; earlier backups are untouched"


class PartitionFenced(Locked):
    """Another process leads this partition of an application now; this one appends nothing any more."""

    remedy = "run only one process per data directory; start this one again if the other one has ended"


class CommitConflict(Locked):
    """Another run committed this generation first; the work of this run is not committed."""

    remedy = "run again; earlier backups are untouched"


class BackupFailed(LogkeepError):
    """The backup could not be completed."""

    exit_code = 20
    remedy = "earlier backups are untouched; run again, or continue with --resume"


class BackupTimedOut(BackupFailed):
    """A partition of an application did not answer before the deadline of the backup."""


class BackupRefused(BackupFailed):
    """A partition of an application cannot take this backup: its checkpoint, history or repository is another one."""


class TaskFailed(BackupFailed):
    """A unit of work failed on every attempt."""


class OldMessageFormat(BackupFailed):
    """A topic holds messages in the format from before Kafka 0.11."""

    remedy = "exclude the topic, or rewrite it: brokers since 4.0 no longer support such messages"


class SourceDamaged(BackupFailed):
    """The source sent invalid bytes."""

    retry_helps = True
    remedy = "if it happens again, check the disk of the named broker; earlier backups are untouched"


class DataGap(LogkeepError):
    """The source removed data before it could be archived."""

    exit_code = 21
    remedy = "back up more often than the source deletes"


class RestoreFailed(LogkeepError):
    """The restore could not be completed or proven."""

    exit_code = 30


class TargetUnsafe(LogkeepError):
    """The target of a restore or of a dataset is not empty, is running, or belongs to another source."""

    exit_code = 31


class OtherOwner(LogkeepError):
    """Another user owns, or can exchange, what a restore would read or change; it was not begun."""

    exit_code = 52
    remedy = "run as the user that owns the directory"


class HistoryUnproven(LogkeepError):
    """Nothing proves that the source's files continue the archived ones: restored data, or another ensemble."""

    exit_code = 31
    remedy = "check that this is the right ensemble; if it is, and its data was restored or purged, pass --new-history"


class VerificationFailed(LogkeepError):
    """A check found damage."""

    exit_code = 10
    remedy = "the findings name each damaged object"


class AuthenticityFailed(LogkeepError):
    """A signature is missing or wrong."""

    exit_code = 11


class WrongKey(LogkeepError):
    """The key or passphrase does not open this repository."""

    exit_code = 42


class HostFailed(LogkeepError):
    """This host has no memory, open files or processes left, a device fails, or a program on it ended."""

    exit_code = 40
    remedy = "see `ulimit -a`, free memory and the kernel's log, then run again"


class ServerFailed(LogkeepError):
    """An embedded server did not start or stop."""

    exit_code = 40
    remedy = "the message names its log file"


class ServerRefused(ServerFailed):
    """An embedded server refused the files in its directories and ended while starting."""


class JarsUnavailable(ServerFailed):
    """The jars of a server are not in the cache directory, and could not be downloaded."""

    exit_code = 51
    remedy = "check the network, or name a mirror with spark.jars.repositories in SPARK_CONF_DIR/spark-defaults.conf"


class JarsUntrusted(ServerFailed):
    """The jars of a server are not those that are pinned by their hashes; nothing was started."""

    exit_code = 40
    remedy = "remove `jars` in the cache directory and run again"


class Interrupted(LogkeepError):
    """A signal ended the run; the repository is consistent."""

    exit_code = 130
    remedy = "run again, or continue with --resume"

    def __init__(self, what: str = "interrupted", *, subject: str = "", remedy: str | None = None) -> None:
        super().__init__(what, subject=subject, remedy=remedy)


class Terminated(Interrupted):
    """SIGTERM ended the run; the repository is consistent."""

    exit_code = 143


OF_THE_VERB: frozenset[type[LogkeepError]] = frozenset(
    {
        LogkeepError,
        StoreError,
        AlreadyExists,
        VersionMismatch,
        ClusterError,
        HostFailed,
        ServerFailed,
        ServerRefused,
    }
)
"""Kinds that say too little for a script: a verb that backs up ends with 20, one that restores with 30, another one
with the code of the kind."""
