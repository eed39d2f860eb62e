"""What a stock Spark Connect client lacks of Phalanx: estimators that Spark does not have."""
