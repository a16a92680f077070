"""Errors of librdkafka, the client of applications, as errors of ours."""

from typing import Any, Final

from confluent_kafka import KafkaError

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, NotAuthorised, TlsFailed

_KINDS: Final[dict[int, type[ClusterError]]] = {
    KafkaError._ALL_BROKERS_DOWN: ClusterUnreachable,
    KafkaError._TRANSPORT: ClusterUnreachable,
    KafkaError._TIMED_OUT: ClusterUnreachable,
    KafkaError._RESOLVE: ClusterUnreachable,
    KafkaError._AUTHENTICATION: AuthenticationFailed,
    KafkaError.SASL_AUTHENTICATION_FAILED: AuthenticationFailed,
    KafkaError._SSL: TlsFailed,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.GROUP_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: NotAuthorised,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorised,
}


def client_error(cause: KafkaError, subject: str, doing: str = "") -> ClusterError:
    """What happened; `doing` says what it stopped."""
    kind = _KINDS.get(cause.code(), ClusterError)
    return kind(f"{doing}: {cause.str()}" if doing else cause.str(), subject=subject)


def client_answer(done: Any, subject: str, wait_s: float) -> Any:
    """The result of a call of the admin client, which may give none at all while brokers are down.

    Raises KafkaException, ClusterUnreachable.
    """
    try:
        return done.result(wait_s)
    except TimeoutError as error:
        raise ClusterUnreachable(f"no broker answered within {wait_s:g} s", subject=subject) from error
