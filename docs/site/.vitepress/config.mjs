// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitepress'
import { pages, repository, sidebar, target } from '../pages.mjs'

export default defineConfig({
  title: 'Windlass',
  description: 'Collectives and tensor redistribution for the JVM',
  lang: 'en-US',
  rewrites: Object.fromEntries([...pages].map(([file, route]) => [file, `${route || 'index'}.md`])),
  outDir: '../site',
  cleanUrls: false,
  lastUpdated: false,
  appearance: true,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    // Anchors as GitHub names them.
    anchor: { slugify: (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-') },
    config(markdown) {
      // A link is resolved from the page's place in the tree: to another page, or to a file of the repository. Any other link ends the build.
      markdown.core.ruler.push('links', (state) => {
        const page = state.env.realPath ?? state.env.path
        for (const block of state.tokens) {
          for (const token of block.children ?? []) {
            for (const name of ['href', 'src']) {
              const value = token.attrGet(name)
              if (value !== null) {
                token.attrSet(name, target(page, value, name === 'src'))
              }
            }
          }
        }
      })
    },
  },
  ignoreDeadLinks: [/^\/api\//],
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    nav: [
      { text: 'Guide', link: '/' },
      { text: 'Java API', link: '/api/index.html', target: '_self' },
      { text: 'Source', link: repository },
    ],
  },
})
