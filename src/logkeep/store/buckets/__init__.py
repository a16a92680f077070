"""The store in buckets of S3, Google Cloud Storage and Azure; versions, object lock and lifecycle rules of a bucket."""
