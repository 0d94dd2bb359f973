"""From frames to feature vectors: encoders, the feature store, features that the user brings."""
