"""Apache Tomcat."""
