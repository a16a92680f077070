"""TLS and SASL of a connection, and the files and secrets that configure them as Kafka's own clients are configured."""
