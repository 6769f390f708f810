"""Models that read images, videos and audio: their processors, features and tokens."""
