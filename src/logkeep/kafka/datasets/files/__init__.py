"""Datasets whose partitions are whole files with records: Avro and Parquet."""
