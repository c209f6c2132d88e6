// SPDX-License-Identifier: Apache-2.0
// The pages of the site: the files of docs/ and those at the root of the repository. docs/README.md, the index, orders the sidebar.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = dirname(fileURLToPath(import.meta.url)) // a copy of the pages, in target/site-source
const root = join(source, '../..')
export const repository = 'https://github.com/windlass-org/windlass'
const index = 'docs/README.md'

function files(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (entry.isDirectory()) {
      return path === 'docs/site' ? [] : files(path)
    }
    return path.endsWith('.md') ? [path] : []
  })
}

const atRoot = readdirSync(root).filter((name) => name.endsWith('.md'))

/** Route of each page, without its suffix, by the page's file relative to the repository. The README is the first page. */
export const pages = new Map([
  ...files('docs').map((file) => [file, file === index ? 'contents' : file.slice('docs/'.length, -'.md'.length)]),
  ...atRoot.map((file) => [file, file === 'README.md' ? '' : `project/${file.slice(0, -'.md'.length).toLowerCase()}`]),
])

/**
 * Returns what a link in a page points to on the site.
 *
 * @param page the page's file, absolute
 * @param link as written in the page
 * @param image whether it is the address of an image, which the site's builder takes from its file
 * @throws Error if it points to nothing
 */
export function target(page, link, image) {
  if (/^[a-z]+:/.test(link) || link.startsWith('#')) {
    return link
  }
  const [path, anchor] = link.split('#', 2)
  const file = posix.normalize(posix.join(posix.dirname(relative(source, page)), decodeURI(path)))
  const suffix = anchor === undefined ? '' : `#${anchor}`
  if (pages.has(file)) {
    return `/${pages.get(file) || 'index'}.html${suffix}`
  }
  const real = join(root, file)
  if (file.startsWith('..') || !existsSync(real)) {
    throw new Error(`${relative(source, page)}: the link ${link} points to nothing`)
  }
  if (image) {
    return real
  }
  return `${repository}/${statSync(real).isDirectory() ? 'tree' : 'blob'}/main/${file}${suffix}`
}

/** Sidebar in the order of the index: a group for each of its sections, an entry for each link to a page. */
export function sidebar() {
  const groups = []
  const seen = new Set([index, 'README.md'])
  for (const line of readFileSync(join(root, index), 'utf8').split('\n')) {
    const heading = line.match(/^## (.*)/)
    if (heading) {
      groups.push({ text: heading[1], collapsed: false, items: [] })
    }
    for (const [, text, link] of line.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)) {
      const file = posix.normalize(posix.join(dirname(index), link))
      if (groups.length > 0 && pages.has(file) && !seen.has(file)) {
        seen.add(file)
        groups.at(-1).items.push({ text: text.replaceAll('`', ''), link: `/${pages.get(file)}.html` })
      }
    }
  }
  const missing = [...pages.keys()].filter((file) => file.startsWith('docs/') && !seen.has(file))
  if (missing.length > 0) {
    throw new Error(`${index} links to none of: ${missing.join(', ')}`)
  }
  return groups.filter((group) => group.items.length > 0)
}
