// SPDX-License-Identifier: Apache-2.0
// Checks each link of a built site: its file is there, and its anchor is in that file. Usage: node check.mjs FOLDER
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

const site = process.argv[2]
const pages = readdirSync(site, { recursive: true })
  .map((file) => file.split('\\').join('/'))
  .filter((file) => file.endsWith('.html') && !file.startsWith('api/') && file !== '404.html')

const anchors = new Map()
function anchorsOf(file) {
  if (!anchors.has(file)) {
    const html = readFileSync(join(site, file), 'utf8')
    anchors.set(file, new Set([...html.matchAll(/ (?:id|name)="([^"]+)"/g)].map((match) => match[1])))
  }
  return anchors.get(file)
}

let links = 0
const faults = []
for (const page of pages) {
  const html = readFileSync(join(site, page), 'utf8')
  for (const [, link] of html.matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]+)"/g)) {
    if (/^[a-z]+:/.test(link)) {
      continue
    }
    links++
    const [path, anchor] = decodeURI(link.replaceAll('&amp;', '&')).split('#', 2)
    const file = path === '' ? page : path === '/' ? 'index.html' : posix.join(path.startsWith('/') ? '' : dirname(page), path)
    const name = file.replace(/^\//, '')
    if (!existsSync(join(site, name))) {
      faults.push(`${page}: no file ${link}`)
    } else if (anchor && name.endsWith('.html') && !anchorsOf(name).has(anchor)) {
      faults.push(`${page}: no anchor ${link}`)
    }
  }
}
for (const fault of faults) {
  console.error(fault)
}
console.error(`${pages.length} pages, ${links} links, ${faults.length} faults`)
process.exit(pages.length > 0 && links > 0 && faults.length === 0 ? 0 : 1)
