"""Records as Avro container files: schemas, blocks, a writer, and a reader of files of any writer."""
