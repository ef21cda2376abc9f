"""What several tools write or read: HDR logs, XML, JSON, logs and options of a JVM, reports line by line."""
