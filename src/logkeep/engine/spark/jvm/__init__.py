"""What a JVM is started from: Java, pinned jars, the class archive; and the processes that it leaves."""
