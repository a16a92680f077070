"""What a Kafka backup records besides logs: topics, groups, ACLs, quotas, SCRAM credentials; and reports about it."""
