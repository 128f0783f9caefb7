-- Add seen marks to the current slice of liveness.
-- KEYS: line, then the current slice
-- ARGV: pages.. (page, its bits as bytes, …)
-- Reply: 'OK'
-- Atomic: marks of concurrent calls are merged, none is lost.
if not item_exists() then return 'OK' end

-- Return the union of two bit strings, 64 bytes at a time: string.byte cannot return a whole page in one
-- call.
local function merged(old, new)
  if old == new then return new end
  if #old < #new then old, new = new, old end
  local parts = {}
  for from = 1, #new, 64 do
    local a, b = {string.byte(old, from, from + 63)}, {string.byte(new, from, from + 63)}
    for i = 1, #b do a[i] = bit.bor(a[i], b[i]) end
    parts[#parts + 1] = string.char(unpack(a))
  end
  parts[#parts + 1] = string.sub(old, #new + 1)
  return table.concat(parts)
end

local pages, fields = {}, {}
for i = PAGES, #ARGV, 2 do pages[#pages + 1] = page_field(tonumber(ARGV[i])) end
for i, old in ipairs(redis.call('HMGET', KEYS[SLICES], unpack(pages))) do
  fields[2 * i - 1] = pages[i]
  fields[2 * i] = merged(old or '', ARGV[PAGES + 2 * i - 1])
end
allow_oom(ITEM)
redis.call('HSET', KEYS[SLICES], unpack(fields))
extend_slice_ttl()
return 'OK'
