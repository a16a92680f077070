"""Names of the histories of Kafka logs. Pure.

The first history of a topic is named by the topic's id, in hexadecimal; each later one has the id, a dash and a number.
"""


def history_name(topic_id: str, number: int) -> str:
    """The name of a history; number 0 is the first one of the topic."""
    return f"{topic_id}-{number}" if number else topic_id


def topic_id_of(history: str) -> str:
    """The id of the topic that a history belongs to."""
    return history.partition("-")[0]


def history_number(history: str) -> int:
    """The number of a history; 0 for the first one of a topic."""
    return int(history.partition("-")[2] or 0)
