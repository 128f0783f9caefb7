-- Generation of a partition's data: evidence of data loss. See docs/adr/015-store-generations.md.

-- Compare the generation that the calling process found when it started (`known`) with the stored one in
-- the hash `key`. A different one, or none, is evidence that the partition lost its data: record the loss,
-- once per generation. A partition without a record receives the id `new_id`. All ids have the same
-- length. Return the time (ms) until which the recorded loss allows numbers to be reclaimed; 0 if no loss
-- is recorded.
local function check_generation(key, known, new_id, now)
  local id, lost, loss_at = unpack(redis.call('HMGET', key, 'id', 'lost', 'lossAt'))
  lost = lost or ''
  if known ~= '' and known ~= id and not string.find(lost, known, 1, true) then
    lost = string.sub(lost .. ',' .. known, -MAX_LOST_GENERATIONS * (#known + 1))
    allow_oom(key)
    redis.call('HSET', key, 'id', id or new_id, 'lost', lost, 'lossAt', format_number(now))
    loss_at = now
  end
  return loss_at and tonumber(loss_at) + RECLAIM_WINDOW_MS or 0
end
