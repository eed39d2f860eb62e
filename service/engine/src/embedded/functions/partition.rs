pub struct PartitionAware;
