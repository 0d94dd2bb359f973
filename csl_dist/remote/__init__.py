"""What runs on Ray: the cluster session, and the stages spread over it."""
