"""What the chapter measures: claims on each release, counts, and throughput of one builder's."""
