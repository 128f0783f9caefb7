-- Adds marks to the slice KEYS[22].
-- ARGV: page, its bits as bytes, …
-- Reply: 'OK'
if not is_there() then return 'OK' end

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

local pages, words = {}, {}
for i = 1, #ARGV, 2 do pages[#pages + 1] = ARGV[i] end
for i, old in ipairs(redis.call('HMGET', KEYS[SLICES], unpack(pages))) do
  words[2 * i - 1] = pages[i]
  words[2 * i] = merged(old or '', ARGV[2 * i])
end
allow_oom(ITEM)
redis.call('HSET', KEYS[SLICES], unpack(words))
keep_slice()
return 'OK'
