use async_trait::async_trait;
use daegi_domain::{CohortRange, Drawn, ItemId, Lane, Millis, Number, UserId};

use super::client::call_error::with_epoch;
use super::{RedisStore, item_hash, reply};
use crate::limits::{LEAVES_PER_CALL, LEAVES_RETENTION_MS};
use crate::types::{BeaconOutcome, Epoch};
use crate::{Error, OpeningStore, Result};

#[async_trait]
impl OpeningStore for RedisStore {
    async fn freeze_cohort(
        &self,
        epoch: Epoch,
        id: &ItemId,
        now: Millis,
    ) -> Result<Option<CohortRange>> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.freeze_cohort);
        script.arg(epoch.0).arg(now);
        let frozen: Vec<u64> = self.run(script).await.map_err(|error| with_epoch(epoch, error))?;
        Ok(match frozen[..] {
            [first, size] => Some(CohortRange { first: Number(first), size }),
            _ => None,
        })
    }

    async fn fix_root(
        &self,
        epoch: Epoch,
        id: &ItemId,
        root: &[u8; 32],
        now: Millis,
    ) -> Result<Option<[u8; 32]>> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.fix_root);
        script.arg(epoch.0).arg(now).arg(hex::encode(root));
        let fixed: String = self.run(script).await.map_err(|error| with_epoch(epoch, error))?;
        (!fixed.is_empty()).then(|| item_hash::bytes(&fixed)).transpose()
    }

    async fn put_beacon(
        &self,
        id: &ItemId,
        round: u64,
        signature: &[u8; 48],
        now: Millis,
    ) -> Result<BeaconOutcome> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.put_beacon);
        script.arg(now).arg(round).arg(hex::encode(signature));
        match self.run::<String>(script).await?.as_str() {
            "stored" => Ok(BeaconOutcome::Stored),
            "known" => Ok(BeaconOutcome::Known),
            "notawaited" => Ok(BeaconOutcome::NotAwaited),
            other => Err(Error::corrupt(format!("put_beacon replied {other:?}"))),
        }
    }

    async fn open_line(
        &self,
        epoch: Epoch,
        id: &ItemId,
        drawn: Option<Drawn>,
        now: Millis,
    ) -> Result<bool> {
        let hash = |bytes: Option<[u8; 32]>| bytes.map(hex::encode).unwrap_or_default();
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.open_line);
        script.arg(epoch.0).arg(now);
        script.arg(hash(drawn.map(|drawn| drawn.root)));
        script.arg(hash(drawn.and_then(|drawn| drawn.beacon)));
        script.arg(hash(drawn.map(|drawn| drawn.seed)));
        self.run(script).await.map_err(|error| with_epoch(epoch, error))
    }

    async fn close_line(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.close_line);
        script.arg(epoch.0).arg(now);
        self.run(script).await.map_err(|error| with_epoch(epoch, error))
    }

    async fn waiting_from(
        &self,
        id: &ItemId,
        from: Number,
        limit: u32,
    ) -> Result<Vec<(UserId, Number)>> {
        let mut range = ::redis::cmd("ZRANGEBYSCORE");
        range.arg(self.keys(id).waiting()).arg(from.0).arg("+inf").arg("WITHSCORES");
        range.arg("LIMIT").arg(0).arg(limit);
        reply::tickets(self.command(&range).await?)
    }

    async fn put_leaves(
        &self,
        id: &ItemId,
        root: &[u8; 32],
        first: u64,
        leaves: &[[u8; 32]],
    ) -> Result<()> {
        let key = self.keys(id).leaves(root);
        for (page, leaves) in (page_of(first)..).zip(leaves.chunks(LEAVES_PER_CALL)) {
            let mut set = ::redis::cmd("HSET");
            set.arg(&key).arg(page).arg(leaves.as_flattened());
            self.command::<()>(&set).await?;
        }
        let mut expire = ::redis::cmd("PEXPIRE");
        self.command(expire.arg(&key).arg(LEAVES_RETENTION_MS)).await
    }

    async fn leaves(&self, id: &ItemId, root: &[u8; 32], first: u64) -> Result<Vec<[u8; 32]>> {
        let mut get = ::redis::cmd("HGET");
        get.arg(self.keys(id).leaves(root)).arg(page_of(first));
        let bytes: Option<Vec<u8>> = self.command(&get).await?;
        let (leaves, _) = bytes.as_deref().unwrap_or_default().as_chunks::<32>();
        Ok(leaves.to_vec())
    }
}

/// Returns the page of a leaf: leaves are stored in pages of [`LEAVES_PER_CALL`], one field each.
fn page_of(index: u64) -> u64 {
    index / LEAVES_PER_CALL as u64
}
