"""The demonstration on one machine: two real SSH hosts, a real Tomcat, a real load."""
