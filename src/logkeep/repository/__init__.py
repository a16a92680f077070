"""Which backups exist, and how they stay: the format of docs/formats/repository.md, nothing of Kafka or ZooKeeper.

layout          the only builder of object names
documents       sealed JSON documents: how metadata is written and read
format          the format object;  opening: create or open a repository, choose a source
actions         what one commit can say;  fold: what all commits together mean (pure)
chain           reading and extending the commit chain in a store
lease, owner    who may write;  writing: the right to change a source, while it lasts
holds, renewal  who must not be pruned under
source          one source as a reader sees it;  states: the four states of a backup as types (pure)
journal         requests and receipts of a backup that is under way
manifest        what a backup consists of;  parts, content: its segment rows;  tiling: are they all there (pure)
backup          begin, complete, fail;  resume: use what an interrupted run left behind
verify          what is damaged;  verifying, verification, verdicts: from one look to the last word
retention       which backups a policy keeps (pure);  prune: delete them
live, garbage   what is live; two phases for the rest
repair          rebuild every cache by listing, go on after a loss
"""
