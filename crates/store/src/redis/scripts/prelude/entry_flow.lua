-- How entries come and go: what the leader observes of a lane once per round. The field `entryFlow` holds the fields
-- of EntryFlow in crates/domain/src/entry_flow.rs, which specifies this. The field `spent` is a running total (ms) of how
-- long entries lasted that ended before they expired.

-- Return the flow that the lane stores as a list of numbers, or nil.
local function read_flow(text)
  local flow = {}
  for number in string.gmatch(text or '', '%d+') do flow[#flow + 1] = tonumber(number) end
  return #flow == 11 and flow or nil
end

-- Observe the entries of the lane. `ttl` is the pass time in ms.
local function observe_entries(ttl, now)
  local entered = redis.call('HLEN', ENTERED)
  local fields = redis.call('HMGET', LINE, 'entryFlow', 'admitted', 'ended:E', 'spent')
  local flow = read_flow(fields[1])
  local admitted, expired, spent = tonumber(fields[2] or '0'), tonumber(fields[3] or '0'), tonumber(fields[4] or '0')
  if not flow then
    flow = {now, entered, admitted, expired, spent, entered > 0 and now or 0, 0, 0, 0, 0, 0}
  else
    local at, had, admitted_at, ages, lasted = flow[1], flow[2], flow[6], flow[7], flow[8]
    if now < at then return end
    local passed, new, lapsed = had * (now - at), math.max(admitted - flow[3], 0), math.max(expired - flow[4], 0)
    local early, early_lasted = math.max(math.max(had + new - entered, 0) - lapsed, 0), math.max(spent - flow[5], 0)
    ages = math.min(math.max(ages + passed - lapsed * ttl - early_lasted, 0), entered * ttl)
    if new > 0 then admitted_at = now end
    lasted, early, early_lasted, lapsed = lasted + passed, flow[9] + early, flow[10] + early_lasted, flow[11] + lapsed
    while early + lapsed > ENTRY_FLOW_ENDS do
      lasted, early = math.floor(lasted / 2), math.floor(early / 2)
      early_lasted, lapsed = math.floor(early_lasted / 2), math.floor(lapsed / 2)
    end
    flow = {now, entered, admitted, expired, spent, admitted_at, ages, lasted, early, early_lasted, lapsed}
  end
  for i, number in ipairs(flow) do flow[i] = format_number(number) end
  -- The leader expires entries at maxmemory, too.
  allow_oom(ITEM)
  redis.call('HSET', LINE, 'entryFlow', table.concat(flow, ':'))
end
